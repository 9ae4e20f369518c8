package main

import "github.com/spf13/pflag"

// subcommand is one of the things that ksnoop does.
type subcommand struct {
	name        string
	usage       string // one line
	operands    string // what they are called in the help, and completed as
	description string
	flags       []flags
	run         action
}

// action does what a command line says.
type action func(*invocation) error

// flags defines options of one concern.
type flags func(*pflag.FlagSet)

// subcommands are all of them, in the order of the help.
func subcommands() []*subcommand {
	return []*subcommand{
		traceCommand(), infoCommand(), listCommand(), compileCommand(), dumpCommand(),
		doctorCommand(), testCommand(), checkCommand(), completionCommand(),
	}
}

// findSubcommand is the one with a name; nil: there is none.
func findSubcommand(name string) *subcommand {
	for _, s := range subcommands() {
		if s.name == name {
			return s
		}
	}
	return nil
}

// subcommandOf is what operands are of: trace unless the first one names another.
func subcommandOf(operands []string) *subcommand {
	if len(operands) > 0 {
		if s := findSubcommand(operands[0]); s != nil {
			return s
		}
	}
	return traceCommand()
}

// takesCommand says whether a subcommand runs what stands behind --.
func (s *subcommand) takesCommand() bool { return s.name == "trace" || s.name == "test" }

// optionSet is options in the order in which they are defined.
func optionSet(define ...flags) *pflag.FlagSet {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.SortFlags = false
	for _, d := range define {
		d(set)
	}
	return set
}

// helpFlag and versionFlag are options of every subcommand.
func helpFlag(f *pflag.FlagSet) { f.BoolP("help", "h", false, "show help") }

func versionFlag(f *pflag.FlagSet) { f.BoolP("version", "V", false, "print the version") }
