package report

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// line returns text on one line: white space becomes a blank, and characters that a
// terminal would not show become question marks.
func line(text string) string { return strings.TrimSpace(printable(text)) }

func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\r':
			return ' '
		case r == utf8.RuneError, !strconv.IsPrint(r):
			return '?'
		}
		return r
	}, text)
}

// lines returns the lines of text. They keep the blanks at their beginning, which
// tables have.
func lines(text string) string {
	all := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, l := range all {
		all[i] = strings.TrimRight(printable(l), " ")
	}
	return strings.TrimRight(strings.Join(all, "\n"), "\n")
}

// noteLines returns all lines of the notes.
func noteLines(notes []string) (all []string) {
	for _, n := range notes {
		all = append(all, strings.Split(lines(n), "\n")...)
	}
	return all
}

// nonEmpty returns the texts that are not empty.
func nonEmpty(texts ...string) (all []string) {
	for _, t := range texts {
		if t != "" {
			all = append(all, t)
		}
	}
	return all
}
