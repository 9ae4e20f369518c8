package main

import (
	"iter"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

func commandNames(app *cli.App) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, c := range app.Commands {
			if !yield(c.Name) {
				return
			}
		}
	}
}

// longOptions are the names of a command's options that have more than one
// letter.
func longOptions(command *cli.Command) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, f := range command.Flags {
			for _, n := range f.Names() {
				if len(n) > 1 && !yield(n) {
					return
				}
			}
		}
	}
}

// checkOptions refuses options that a command does not have.
func checkOptions(command *cli.Command, withValue map[string]bool, options []string) error {
	known := map[string]bool{}
	for _, f := range command.Flags {
		for _, n := range f.Names() {
			known[n] = true
		}
	}
	for i := 0; i < len(options); i++ {
		name, _, inline := strings.Cut(strings.TrimLeft(options[i], "-"), "=")
		if !known[name] {
			return unknownOption(command, options[i], name)
		}
		if withValue[name] && !inline {
			i++ // its value
		}
	}
	return nil
}

// unknownCommand is about options that trace does not have, behind what is
// nearly another command; nil: it is none.
func unknownCommand(app *cli.App, name string) error {
	if near, ok := spec.Nearest(name, commandNames(app)); ok {
		return usagef("there is no command %s: did you mean '%s'?", name, near)
	}
	return nil
}

func unknownOption(command *cli.Command, option, name string) error {
	option, _, _ = strings.Cut(option, "=")
	if near, ok := spec.Nearest(name, longOptions(command)); ok && len(name) > 1 {
		return usagef("%s has no option %s: did you mean --%s?", command.Name, option, near)
	}
	return usagef("%s has no option %s: ksnoop %s --help lists them", command.Name, option, command.Name)
}

// unknownName refuses what is not one of the names that an option may have.
func unknownName(option, name string, names []string) error {
	if near, ok := spec.Nearest(name, slices.Values(names)); ok {
		return usagef("%s is %q: did you mean %q? it must be %s", option, name, near, orList(names))
	}
	return usagef("%s is %q: it must be %s", option, name, orList(names))
}

func orList(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
