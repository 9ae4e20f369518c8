package main

import (
	"regexp"
	"slices"
	"strings"
)

// How many lines excerpts have at most.
const (
	assertionLines = 14
	buildLines     = 10
	messageLines   = 3
	tailLines      = 5
)

// splitLines returns the lines of output without what separates them.
func splitLines(output string) []string {
	lines := strings.Split(strings.TrimRight(output, "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " \t\r")
	}
	return lines
}

// ranked returns lines each of which matters less than the one before.
func ranked(texts []string) (lines []line) {
	for i, text := range texts {
		lines = append(lines, line{text, i})
	}
	return lines
}

// without returns the lines that are not equal to text.
func without(lines []string, text string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return l == text })
}

// indentOf returns how many spaces and tabs a line starts with.
func indentOf(l string) int { return len(l) - len(strings.TrimLeft(l, " \t")) }

// framing matches what the testing package prints between what tests print.
var framing = regexp.MustCompile(`^\s*(?:=== (?:RUN|PAUSE|CONT|NAME|ATTR|ARTIFACTS) |--- (?:PASS|FAIL|SKIP|BENCH): )`)

// tail returns the last lines of output, without the indentation that all of them
// have.
func tail(lines []string) []line {
	var said []string
	for _, l := range lines {
		if l != "" && !framing.MatchString(l) {
			said = append(said, l)
		}
	}
	said = said[max(0, len(said)-tailLines):]
	indent := len(strings.Join(said, ""))
	for _, l := range said {
		indent = min(indent, indentOf(l))
	}
	var all []line
	for i, l := range said {
		all = append(all, line{l[indent:], len(said) - i})
	}
	return all
}

// buildErrors returns the first errors that a build printed.
func buildErrors(output string) []line {
	var errs []string
	for _, l := range splitLines(output) {
		if l != "" && !strings.HasPrefix(l, "# ") {
			errs = append(errs, l)
		}
	}
	return ranked(errs[:min(len(errs), buildLines)])
}

// The lines of an assertion of testify: one with a label, and one that goes on
// below it.
var (
	labelled = regexp.MustCompile(`^\s*\t(Error Trace|Error|Test|Messages): *(?:\t(.*))?$`)
	further  = regexp.MustCompile(`^ *\t +\t(.*)$`)
)

// assertion returns the error of the first assertion of testify that failed, and
// where it is, or nil if there is none.
func assertion(lines []string) []line {
	var where, label string
	var text []string
	for _, l := range lines {
		if m := labelled.FindStringSubmatch(l); m != nil {
			if label == "Error" {
				break
			}
			switch label = m[1]; label {
			case "Error Trace":
				where = base(m[2]) + ": "
			case "Error":
				text = append(text, m[2])
			}
			continue
		}
		if m := further.FindStringSubmatch(l); m != nil && label == "Error" {
			text = append(text, m[1])
		} else if label == "Error" && l != "" {
			break
		}
	}
	for _, always := range []string{"", "Diff:", "--- Expected", "+++ Actual"} {
		text = without(text, always)
	}
	text = joinIntroduction(text)
	if len(text) == 0 {
		return nil
	}
	text[0] = where + text[0]
	return ranked(text[:min(len(text), assertionLines)])
}

// joinIntroduction joins a first line such as "Received unexpected error:", which
// says little, with the second.
func joinIntroduction(text []string) []string {
	if len(text) < 2 || !strings.HasSuffix(text[0], ":") || strings.HasPrefix(text[1], "expected") {
		return text
	}
	return append([]string{text[0] + " " + text[1]}, text[2:]...)
}

// base returns the last element of a path.
func base(path string) string { return path[strings.LastIndex(path, "/")+1:] }

// logged matches the first line of what t.Log, t.Error and t.Fatal print.
var logged = regexp.MustCompile(`^(\s*)(\S+\.go:\d+:)(?: (.*))?$`)

// messages returns the last messages of t.Error and t.Fatal, as many as fit, and
// of a longer one the first lines; nil if there is none. Messages of t.Log look
// the same, but seldom follow the error.
func messages(lines []string) []line {
	all := splitMessages(lines)
	var texts []string
	for i := len(all) - 1; i >= 0; i-- {
		if texts != nil && len(texts)+len(all[i]) > messageLines {
			break
		}
		texts = append(slices.Clone(all[i][:min(len(all[i]), messageLines)]), texts...)
	}
	return ranked(texts)
}

// splitMessages returns the lines of each message that is in the log of a test, or
// in the log of another test that it repeats, but no marks.
func splitMessages(lines []string) (all [][]string) {
	indent := -1 // that of the current message, or -1 outside of one
	for _, l := range lines {
		m := logged.FindStringSubmatch(l)
		switch {
		case kernelLine.MatchString(l) || againLine.MatchString(l):
			indent = -1
		case m != nil:
			indent = len(m[1])
			all = append(all, []string{strings.TrimSpace(m[2] + " " + m[3])})
		case l == "":
		case indent < 0 || indentOf(l) <= indent || framing.MatchString(l):
			indent = -1
		default:
			last := &all[len(all)-1]
			*last = append(*last, "    "+strings.TrimPrefix(l, strings.Repeat(" ", indent+4)))
		}
	}
	return slices.DeleteFunc(all, isEmpty)
}

// isEmpty reports whether a message is nothing but its place.
func isEmpty(message []string) bool {
	return len(message) == 1 && strings.HasSuffix(message[0], ":") && !strings.Contains(message[0], " ")
}
