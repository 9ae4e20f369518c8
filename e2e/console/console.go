// Package console reads the examples of a page of documentation and compares
// them with what their commands print:
//
//	```sh file=hello.sh
//	echo hello
//	```
//
//	```console
//	$ sh hello.sh
//	hello
//	```
//
// A fence whose first word is console holds commands and their output. Commands
// begin with "$ " or "# ", and continue after a backslash at the end of a line.
// as=WHO runs them as another user than root, and with=WHAT names something
// that they need and other commands do not have. A fence with file=NAME is a
// file for the commands that follow it.
package console

import (
	"fmt"
	"regexp"
	"strings"
)

// A Step is a file to write or a command to run.
type Step struct {
	Line    int    // in the page
	File    string // its name; empty for a command
	Content string // of the file
	Command string
	As      string // the user who runs it; empty for root
	With    string // what it needs; empty for a shell
	Output  string // the command's output in the page
}

// Read returns the steps of a page in order.
func Read(page string) ([]Step, error) {
	var steps []Step
	var fence []string // the lines of the open fence
	info, open := "", 0
	for i, line := range strings.Split(page, "\n") {
		text, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && open == 0:
			info, open, fence = text, i+1, nil
		case isFence:
			found, err := read(info, open, fence)
			if err != nil {
				return nil, err
			}
			steps, open = append(steps, found...), 0
		case open > 0:
			fence = append(fence, line)
		}
	}
	if open > 0 {
		return nil, fmt.Errorf("line %d: the fence has no end", open)
	}
	return steps, nil
}

// read returns the steps of a fence that begins at the given line.
func read(info string, line int, fence []string) ([]Step, error) {
	who, with := "", ""
	for word := range strings.FieldsSeq(info) {
		if name, ok := strings.CutPrefix(word, "file="); ok {
			return []Step{{Line: line, File: name, Content: strings.Join(fence, "\n") + "\n"}}, nil
		}
		if name, ok := strings.CutPrefix(word, "as="); ok {
			who = name
		}
		if name, ok := strings.CutPrefix(word, "with="); ok {
			with = name
		}
	}
	if first, _, _ := strings.Cut(info, " "); first != "console" {
		return nil, nil
	}
	var steps []Step
	continued := false
	for i, text := range fence {
		command, isCommand := prompted(text)
		switch n := len(steps); {
		case continued:
			steps[n-1].Command += "\n" + text
		case isCommand:
			steps = append(steps, Step{Line: line + i + 1, Command: command, As: who, With: with})
		case n == 0:
			return nil, fmt.Errorf("line %d: output before the first command", line+i+1)
		default:
			steps[n-1].Output += text + "\n"
		}
		continued = (isCommand || continued) && strings.HasSuffix(text, `\`)
	}
	return steps, nil
}

// prompted returns the command of a line with a prompt.
func prompted(line string) (string, bool) {
	if command, ok := strings.CutPrefix(line, "$ "); ok {
		return command, true
	}
	// Lines of traces begin with "# " as well, but a command begins with a
	// program's name.
	if command, ok := strings.CutPrefix(line, "# "); ok && asRoot.MatchString(command) {
		return command, true
	}
	return "", false
}

var asRoot = regexp.MustCompile(`^(ksnoop|KSNOOP_|NO_COLOR|echo|cat|sh|mkdir) ?`)

// Holds reports whether a command has printed what the page shows. An exit
// status must be equal, unlike other numbers.
func (s Step) Holds(printed string) bool {
	if s.Command == "echo $?" {
		return s.Output == printed
	}
	return Match(s.Output, printed)
}

// Match reports whether the printed text matches the page. Numbers, units of time and
// the width of columns may differ, histograms may have other rows, and blank lines at the
// end do not count. A line "..." of the page matches any lines, and " ..." at the end of
// a line matches any text. Where an interrupt came to an idle CPU, it may have come to
// any process.
func Match(page, printed string) bool {
	var pattern strings.Builder
	pattern.WriteString(`^`)
	for _, line := range plain(page) {
		start, cut := strings.CutSuffix(line, " ...")
		switch {
		case line == "...":
			pattern.WriteString(`(?:.*\n)*?`)
		case cut:
			pattern.WriteString(quote(start) + `.*\n`)
		default:
			pattern.WriteString(quote(line) + `\n`)
		}
	}
	got := ""
	for _, line := range plain(printed) {
		got += line + "\n"
	}
	return regexp.MustCompile(pattern.String() + `$`).MatchString(got)
}

// quote returns a pattern for a line of a page.
func quote(line string) string {
	return strings.ReplaceAll(regexp.QuoteMeta(line), " "+idle+" ", ` \S+ `)
}

// idle is the thread of a CPU that has nothing to do, as plain shows it.
const idle = "swapper/0"

var (
	numbers = regexp.MustCompile(`0x[0-9a-f]+|[0-9]+(\.[0-9]+)*([mnuµ]?s\b)?`)
	blanks  = regexp.MustCompile(`[ \t]+`)
	bar     = regexp.MustCompile(`\|@* ?\|$`)
)

// plain returns the lines of a text without what may differ.
func plain(text string) (lines []string) {
	inBars := false
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		line = numbers.ReplaceAllString(strings.TrimRight(line, "\n"), "0")
		line = strings.TrimSpace(blanks.ReplaceAllString(line, " "))
		isBar := bar.MatchString(line)
		if isBar {
			line = "|@|"
		}
		if !isBar || !inBars {
			lines = append(lines, line)
		}
		inBars = isBar
	}
	return lines
}
