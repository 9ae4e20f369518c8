package complete

import (
	"cmp"
	"slices"

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
	Value        string   // the name of its value in the help
	Choices      []string // the values that it takes, if these are few
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
			all = append(all, &candidate{text: "--" + o.Name, note: o.Usage})
		}
	}
	slices.SortFunc(all, func(a, b *candidate) int { return cmp.Compare(a.text, b.text) })
	return all
}

// option returns an option of the command, of all commands or else of any, or one
// without a name.
func (c *Completer) option(operands []string, name string) Option {
	all := append(slices.Clone(c.command(operands).Options), c.options...)
	for _, s := range c.commands {
		all = append(all, s.Options...)
	}
	for _, o := range all {
		if o.Name == name {
			return o
		}
	}
	return Option{}
}

// value completes the value of an option.
func (c *Completer) value(line *getopt.Line, name, before, word string) answer {
	o := c.option(line.Operands, name)
	a := answer{kind: wholeWords}
	switch o.Value {
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
		found := completeType(c.typesOf(line), word)
		for _, f := range found {
			f.more = []string{" *"} // the type of an argument is mostly a pointer
		}
		return parts(before+word, prefixed(before, found))
	case "FUNCTION":
		return parts(before+word, prefixed(before, completeSpec(c.typesOf(line), word, true)))
	default:
		a.candidates = candidatesOf(o.Choices)
	}
	a.candidates = prefixed(before, beginning(word, a.candidates))
	return a
}

// prefixed puts a text before all candidates, and returns them.
func prefixed(before string, all []*candidate) []*candidate {
	for _, found := range all {
		found.text = before + found.text
	}
	return all
}
