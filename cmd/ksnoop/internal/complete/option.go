package complete

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/getopt"
)

// Completer completes the command lines of a program.
type Completer struct {
	commands []*Command // the first is the default
	options  []Option   // of all commands
	types    string     // the option for a file with the kernel's types
	system   systemSource
}

// Command is a command of the program.
type Command struct {
	Name, Usage string
	Operands    string // as the help names them
	Options     []Option
}

// Option is an option, with its description in the help.
type Option struct {
	getopt.Option
	Short, Usage string
	Hidden       bool
}

// New returns a completer for a program with these commands, of which the first is
// the default, and with options that all commands have. types is the option for a
// file with the kernel's types.
func New(commands []*Command, options []Option, types string) *Completer {
	return &Completer{commands: commands, options: options, types: types, system: running{}}
}

// command returns the command that operands are for: the first, unless they begin
// with the name of another.
func (c *Completer) command(operands []string) *Command {
	if len(operands) > 0 {
		if i := slices.IndexFunc(c.commands, func(s *Command) bool { return s.Name == operands[0] }); i >= 0 {
			return c.commands[i]
		}
	}
	return c.commands[0]
}

// split splits a command line by the options of all commands.
func (c *Completer) split(words []string) *getopt.Line {
	all := map[string]getopt.Option{}
	add := func(options []Option) {
		for _, o := range options {
			all[o.Name], all[cmp.Or(o.Short, o.Name)] = o.Option, o.Option
		}
	}
	add(c.options)
	for _, s := range c.commands {
		add(s.Options)
	}
	return getopt.Split(words, func(name string) (getopt.Option, bool) {
		o, ok := all[name]
		return o, ok
	})
}

// optionNames returns the options of a command that the help shows. If no command is
// named yet, these include the options of trace.
func (c *Completer) optionNames(operands []string) (all []*candidate) {
	for _, o := range append(slices.Clone(c.command(operands).Options), c.options...) {
		if !o.Hidden {
			all = append(all, &candidate{text: "--" + o.Name, note: strings.ReplaceAll(o.Usage, "`", "")})
		}
	}
	slices.SortFunc(all, func(a, b *candidate) int { return cmp.Compare(a.text, b.text) })
	return all
}

// option returns the usage of an option of the command or, without one, of any
// command.
func (c *Completer) option(operands []string, name string) (usage string, ok bool) {
	for _, s := range append([]*Command{c.command(operands)}, c.commands...) {
		if i := slices.IndexFunc(s.Options, func(o Option) bool { return o.Name == name }); i >= 0 {
			return s.Options[i].Usage, true
		}
	}
	return "", false
}

// value completes the value of an option, as its help describes it.
func (c *Completer) value(line *getopt.Line, name, before, word string) answer {
	usage, ok := c.option(line.Operands, name)
	if !ok {
		return answer{kind: wholeWords}
	}
	placeholder, choices := choicesOf(usage)
	a := answer{kind: wholeWords}
	switch placeholder {
	case "FILE":
		return answer{kind: files}
	case "DIRECTORY":
		return answer{kind: directories}
	case "PID", "TID":
		a.candidates = c.system.processes()
	case "GLOB":
		a.candidates = c.system.threadNames()
	case "USER":
		a.candidates = c.system.users()
	case "TYPE":
		return c.argumentType(line, before, word)
	case "FUNCTION":
		found := completeSpec(c.typesOf(line), word, true)
		for _, f := range found {
			f.text = before + f.text
		}
		return parts(before+word, found)
	default:
		a.candidates = candidatesOf(choices)
	}
	a.candidates = beginning(word, a.candidates)
	for _, found := range a.candidates {
		found.text = before + found.text
	}
	return a
}

// argumentType completes the type of an argument, which is mostly a pointer.
func (c *Completer) argumentType(line *getopt.Line, before, word string) answer {
	found := completeType(c.typesOf(line), word)
	for _, f := range found {
		f.text = before + f.text
		f.more = []string{" *"}
	}
	return parts(before+word, found)
}

// choicesOf returns the name of an option's value in the help, and the values that
// the help lists: "print `FORMAT`: text, or json for one object (...)".
func choicesOf(usage string) (placeholder string, choices []string) {
	_, rest, _ := strings.Cut(usage, "`")
	placeholder, rest, _ = strings.Cut(rest, "`")
	_, list, ok := strings.Cut(rest, ": ")
	if !ok {
		return placeholder, nil
	}
	list, _, _ = strings.Cut(list, " (")
	for _, part := range strings.FieldsFunc(strings.ReplaceAll(list, " or ", ","), func(r rune) bool { return r == ',' }) {
		if words := strings.Fields(part); len(words) > 0 {
			choices = append(choices, words[0])
		}
	}
	return placeholder, choices
}
