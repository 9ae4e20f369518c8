// Package console reads the examples of a page of documentation, and compares
// them with what happens:
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
// A fence whose first word is console holds commands, which begin with "$ " or
// "# " and go on behind a backslash at the end of a line, and what they print.
// With as=WHO somebody else runs them than root, and with=WHAT says what they
// need that is not there for others. A fence with file=NAME is a file that the
// commands behind it find.
package console

import (
	"fmt"
	"regexp"
	"strings"
)

// A Step is a file to write or a command to run.
type Step struct {
	Line    int    // in the page
	File    string // its name; "": a command
	Content string // of the file
	Command string
	As      string // who runs it; "": root
	With    string // what it needs; "": a shell
	Output  string // what the page says that it prints
}

// Read returns the steps of a page in order.
func Read(page string) ([]Step, error) {
	var steps []Step
	var fence []string // lines of the one that is open
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

// read returns the steps of a fence that begins at a line.
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
	// Comments of traces begin with "# " as well, but commands with a program.
	if command, ok := strings.CutPrefix(line, "# "); ok && asRoot.MatchString(command) {
		return command, true
	}
	return "", false
}

var asRoot = regexp.MustCompile(`^(ksnoop|KSNOOP_|NO_COLOR|echo|cat|sh|mkdir) ?`)

// Holds says whether a command has printed what the page says. A status is a
// number that may not differ.
func (s Step) Holds(printed string) bool {
	if s.Command == "echo $?" {
		return s.Output == printed
	}
	return Match(s.Output, printed)
}

// Match compares what a page says with what was printed. Numbers may differ,
// and the width of columns. A line of the page that is "..." stands for any
// lines, and one that ends in " ..." for any end of a line.
func Match(page, printed string) bool {
	var pattern strings.Builder
	pattern.WriteString(`^`)
	for line := range strings.Lines(page) {
		line = plain(line)
		start, cut := strings.CutSuffix(line, " ...")
		switch {
		case line == "...":
			pattern.WriteString(`(?:.*\n)*?`)
		case cut:
			pattern.WriteString(regexp.QuoteMeta(start) + `.*\n`)
		default:
			pattern.WriteString(regexp.QuoteMeta(line) + `\n`)
		}
	}
	var got strings.Builder
	for line := range strings.Lines(printed) {
		got.WriteString(plain(line) + "\n")
	}
	return regexp.MustCompile(pattern.String() + `$`).MatchString(got.String())
}

var (
	numbers = regexp.MustCompile(`0x[0-9a-f]+|[0-9]+(\.[0-9]+)*`)
	blanks  = regexp.MustCompile(`[ \t]+`)
)

// plain is a line without what may differ.
func plain(line string) string {
	line = numbers.ReplaceAllString(strings.TrimRight(line, "\n"), "0")
	return strings.TrimSpace(blanks.ReplaceAllString(line, " "))
}
