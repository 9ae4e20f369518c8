package main

import (
	"strings"

	"github.com/spf13/pflag"
)

// optionNames are the options of a subcommand that are shown; a word that none is
// named by yet may have those of trace.
func optionNames(operands []string) (all []*candidate) {
	set := optionSet(append(subcommandOf(operands).flags, helpFlag, versionFlag)...)
	set.SortFlags = true
	set.VisitAll(func(o *pflag.Flag) {
		if !o.Hidden {
			all = append(all, &candidate{text: "--" + o.Name, note: strings.ReplaceAll(o.Usage, "`", "")})
		}
	})
	return all
}

// optionOf is the option of a name, of the subcommand or of any; nil: there is
// none.
func optionOf(operands []string, name string) *pflag.Flag {
	for _, s := range append([]*subcommand{subcommandOf(operands)}, subcommands()...) {
		if o := optionSet(s.flags...).Lookup(name); o != nil {
			return o
		}
	}
	return nil
}

// completeValue completes the value of an option, as its help describes it.
func completeValue(option *pflag.Flag, system systemSource, before, word string) answer {
	if option == nil {
		return answer{kind: wholeWords}
	}
	placeholder, choices := choicesOf(option.Usage)
	a := answer{kind: wholeWords}
	switch placeholder {
	case "FILE":
		return answer{kind: files}
	case "DIRECTORY":
		return answer{kind: directories}
	case "PID", "TID":
		a.candidates = system.processes()
	case "GLOB":
		a.candidates = system.threadNames()
	case "USER":
		a.candidates = system.users()
	default:
		a.candidates = candidatesOf(choices)
	}
	a.candidates = beginning(word, a.candidates)
	for _, c := range a.candidates {
		c.text = before + c.text
	}
	return a
}

// choicesOf is what the help of an option calls its value, and the values that it
// lists: "print `FORMAT`: text, or json for one object (...)".
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
