package main

import (
	"iter"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

func commandNames() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, s := range subcommands() {
			if !yield(s.name) {
				return
			}
		}
	}
}

// longOptions are the long names of a subcommand's options.
func longOptions(s *subcommand) iter.Seq[string] {
	var names []string
	optionSet(s.flags...).VisitAll(func(o *pflag.Flag) { names = append(names, o.Name) })
	return slices.Values(names)
}

// unknownCommand is about options that trace does not have, behind what is
// nearly another command; nil: it is none.
func unknownCommand(name string) error {
	if near, ok := spec.Nearest(name, commandNames()); ok {
		return usagef("there is no command %s: did you mean '%s'?", name, near)
	}
	return nil
}

// unknownTopic is about what help does not explain.
func unknownTopic(name string) error {
	if near, ok := spec.Nearest(name, commandNames()); ok {
		return usagef("there is no command %s: did you mean 'ksnoop help %s'?", name, near)
	}
	return usagef("there is no command %s: ksnoop help lists them, and ksnoop help spec explains the language", name)
}

// unknownOption is about an option that a subcommand does not have, with its dashes.
func unknownOption(s *subcommand, option string) error {
	option, _, _ = strings.Cut(option, "=")
	name := strings.TrimLeft(option, "-")
	if near, ok := spec.Nearest(name, longOptions(s)); ok && len(name) > 1 {
		return usagef("%s has no option %s: did you mean --%s?", s.name, option, near)
	}
	return usagef("%s has no option %s: ksnoop %s --help lists them", s.name, option, s.name)
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
