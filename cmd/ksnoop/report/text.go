package report

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// line is text on one line: what separates words becomes a blank, and what a
// terminal would not show a question mark.
func line(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\r':
			return ' '
		case r == utf8.RuneError, !strconv.IsPrint(r):
			return '?'
		}
		return r
	}, text))
}

// lines is text on lines of their own.
func lines(text string) string {
	all := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, l := range all {
		all[i] = line(l)
	}
	return strings.TrimRight(strings.Join(all, "\n"), "\n")
}

// noteLines are all lines of the notes.
func noteLines(notes []string) []string {
	var all []string
	for _, n := range notes {
		all = append(all, strings.Split(lines(n), "\n")...)
	}
	return all
}

// nonEmpty are the texts that are not empty.
func nonEmpty(texts ...string) []string {
	var all []string
	for _, t := range texts {
		if t != "" {
			all = append(all, t)
		}
	}
	return all
}
