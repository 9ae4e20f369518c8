package main

import (
	"regexp"
	"slices"
	"strings"
)

// How many lines of a script are shown.
const (
	reasonLines  = 3 // of the reason
	streamLines  = 4 // of standard output and standard error each
	commentLines = 8 // of what a command of the script itself says, such as a diff
)

var (
	// scriptFail matches the line of testscript that says why a script failed.
	scriptFail = regexp.MustCompile(`^( *)FAIL: \S+:\d+: `)
	// streamName matches the lines that testscript puts before what a program
	// printed, and the one that says how it ended.
	streamName = regexp.MustCompile(`^\[(?:stdout|stderr|exit status .*|signal: .*)\]$`)
	// sectionName matches a comment of a script, which names a section.
	sectionName = regexp.MustCompile(`^# .* \(\d+\.\d+s\)$`)
)

// A command is a line of a script with what it printed.
type command struct {
	text   string
	output []string
}

// scriptFailure returns why a script of testscript failed, after the command
// that did and the last output, or nil if no script failed. The log may be
// indented as a whole, as it is in a log that repeats another.
func scriptFailure(lines []string) []line {
	at := slices.IndexFunc(lines, scriptFail.MatchString)
	if at < 0 {
		return nil
	}
	indent := scriptFail.FindStringSubmatch(lines[at])[1]
	var excerpt []line
	for _, c := range lastCommands(lines[:at], indent) {
		excerpt = append(excerpt, line{c.text, reasonLines})
		output := shorten(c.output)
		for i, text := range output {
			excerpt = append(excerpt, line{text, reasonLines + len(output) - i})
		}
	}
	return append(excerpt, ranked(reasonAt(lines[at:], indent))...)
}

// reasonAt returns the reason that a script failed for, which ends with an
// empty line.
func reasonAt(lines []string, indent string) (reason []string) {
	for _, l := range lines {
		text, ok := strings.CutPrefix(l, indent)
		if !ok || text == "" || len(reason) == reasonLines || framing.MatchString(l) {
			break
		}
		reason = append(reason, text)
	}
	return reason
}

// lastCommands returns the command that ends the lines. If that printed nothing,
// it is one that looks at the output of another, which comes first.
func lastCommands(lines []string, indent string) (last []command) {
	end := len(lines)
	for i, l := range slices.Backward(lines) {
		text, ok := strings.CutPrefix(l, indent)
		if !ok && l != "" {
			break
		}
		if !strings.HasPrefix(text, "> ") {
			continue
		}
		c := command{text, outputOf(lines[i+1:end], indent)}
		if len(last) == 0 || len(c.output) > 0 {
			last = append([]command{c}, last...)
		}
		if len(c.output) > 0 {
			break
		}
		end = i
	}
	return last
}

// outputOf returns the lines that a command printed.
func outputOf(lines []string, indent string) (output []string) {
	for _, l := range lines {
		if text := strings.TrimPrefix(l, indent); text != "" && !sectionName.MatchString(text) {
			output = append(output, text)
		}
	}
	return output
}

// shorten returns the end of each stream of a command's output.
func shorten(output []string) (short []string) {
	limit := commentLines
	var stream []string
	flush := func() {
		short = append(short, stream[max(0, len(stream)-limit):]...)
		stream = nil
	}
	for _, l := range output {
		if !streamName.MatchString(l) {
			stream = append(stream, l)
			continue
		}
		flush()
		short, limit = append(short, l), streamLines
	}
	flush()
	return short
}
