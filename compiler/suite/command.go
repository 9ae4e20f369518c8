package suite

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// arg is a word of a command. A word in quotes is never an option.
type arg struct {
	word
	quoted bool
}

// shellWords lists words with a meaning for a shell but not for a command.
var shellWords = []string{"|", "||", "&", "&&", ";", ">", ">>", "<", "2>&1"}

// run parses the command and, at the end of the line, its options.
func (p *parser) run(l *line) error {
	if err := p.once(l, "run", spec.Span{End: l.pos}); err != nil {
		return err
	}
	var args []arg
	for !l.end() {
		w, quoted, err := l.unquoted()
		if err != nil {
			return err
		}
		if !quoted && slices.Contains(shellWords, w.text) {
			return l.errorf(w.at, "%s is for a shell, and run starts none", spec.Quote(w.text)).WithHint(`write sh -c "..."`)
		}
		args = append(args, arg{w, quoted})
	}
	run := &Run{From: l.from}
	args, err := run.options(l, args)
	switch {
	case err != nil:
		return err
	case len(args) == 0 || args[0].text == "":
		return l.missing("the command", word{})
	case args[0].text == "--" && !args[0].quoted:
		return l.errorf(args[0].at, "there is no '--' before the command of a probe file")
	}
	for _, a := range args {
		run.Command = append(run.Command, a.text)
	}
	p.suite.Run = run
	return nil
}

// options parses the options after the command, from the end of the line
// backwards, and returns the command. Words of the command that look like options
// must be in quotes.
func (r *Run) options(l *line, args []arg) (command []arg, err error) {
	var status, timeout bool
	for len(args) >= 2 {
		name, value := args[len(args)-2], args[len(args)-1]
		switch {
		case name.quoted || name.text != "status" && name.text != "timeout":
			return args, r.danglingOption(l, value)
		case name.text == "status" && status, name.text == "timeout" && timeout:
			return nil, l.errorf(name.at, "a second '%s'", name.text)
		case name.text == "status":
			status = true
			r.Status, err = l.status(value.word)
		default:
			timeout = true
			r.Timeout, err = l.durationOf(value.word)
		}
		if err != nil {
			return nil, err
		}
		args = args[:len(args)-2]
	}
	if len(args) == 1 {
		err = r.danglingOption(l, args[0])
	}
	return args, err
}

// danglingOption refuses an option without a value.
func (r *Run) danglingOption(l *line, last arg) error {
	if last.quoted || last.text != "status" && last.text != "timeout" {
		return nil
	}
	at := spec.Span{Start: last.at.End, End: last.at.End}
	return l.errorf(at, "a value is missing after '%s'", last.text).WithHint(`a word of the command is written "%s"`, last.text)
}

// status parses an exit status.
func (l *line) status(w word) (int, error) {
	n, err := strconv.ParseUint(w.text, 10, 8)
	if err != nil || !isNumber(w.text) {
		return 0, l.errorf(w.at, "%s is not an exit status", spec.Quote(w.text)).WithHint("a status goes from 0 to 255")
	}
	return int(n), nil
}

// duration reads the next word and parses it as a duration.
func (l *line) duration(what string) (time.Duration, error) {
	w := l.token()
	if w.text == "" {
		return 0, l.missing(what, w)
	}
	return l.durationOf(w)
}

// durationOf parses a word as a duration, which must not be 0.
func (l *line) durationOf(w word) (time.Duration, error) {
	ns, err := spec.ParseDuration(w.text)
	switch {
	case err != nil:
		return 0, l.adopt(err, w.at.Start)
	case ns == 0:
		return 0, l.errorf(w.at, "a duration of nothing")
	case ns > math.MaxInt64:
		return 0, l.errorf(w.at, "%s is longer than 292 years", spec.Quote(w.text))
	}
	return time.Duration(ns), nil
}

// units lists the units of durations, the largest first.
var units = []struct {
	name string
	of   time.Duration
}{{"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}, {"us", time.Microsecond}}

// duration prints a duration as a whole number of the largest unit.
func duration(d time.Duration) string {
	for _, unit := range units {
		if d%unit.of == 0 {
			return strconv.FormatInt(int64(d/unit.of), 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(d), 10) + "ns"
}

// Command returns the command that makes the calls: that of the run line, or args,
// which are the words after -- on a command line. If outside is true, something
// else makes the calls, and Command returns nil. It returns an error unless there
// is exactly one of these three.
func (s *Suite) Command(args []string, outside bool) (*Run, error) {
	switch {
	case s.Run == nil && len(args) > 0:
		return &Run{Command: args}, nil
	case s.Run == nil && outside:
		return nil, nil
	case s.Run == nil:
		return nil, fmt.Errorf("%s names no command: add a line 'run COMMAND' or write -- COMMAND after the options", s.File)
	case len(args) > 0:
		return nil, fmt.Errorf("a command follows --, and %s has one in line %d: leave one of them out", s.File, s.Run.From.Line)
	case outside:
		return nil, errors.New("the calls come from outside, and " + s.File + " has a command in line " + strconv.Itoa(s.Run.From.Line) + ": leave one of them out")
	}
	return s.Run, nil
}

// String returns the run line.
func (r *Run) String() string {
	text := "run"
	for _, word := range r.Command {
		text += " " + quoteWord(word)
	}
	if r.Timeout > 0 {
		text += " timeout " + duration(r.Timeout)
	}
	return text + " status " + strconv.Itoa(r.Status)
}

// quoteWord returns a word of a command as it is written in a probe file.
func quoteWord(word string) string {
	special := strings.IndexFunc(word, func(r rune) bool { return r == '"' || r == '\'' || r == '#' || spec.IsBlank(byte(r)) }) >= 0
	if word == "" || word == "--" || special || word == "status" || word == "timeout" || slices.Contains(shellWords, word) {
		return quote(word)
	}
	return word
}
