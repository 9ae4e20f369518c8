package main

import (
	"cmp"
	"slices"
	"strings"
)

// answer is what a shell is told about a word.
type answer struct {
	kind       answerKind
	candidates []*candidate
}

// answerKind is what the first line of an answer says.
type answerKind string

const (
	wholeWords  answerKind = "words"       // a blank follows
	wordParts   answerKind = "parts"       // more may follow
	files       answerKind = "files"       // the shell knows them
	directories answerKind = "directories" // the same
	commandLine answerKind = "command"     // another command begins behind --
)

// systemSource is where completion finds what is no type.
type systemSource interface {
	types(file string) typeSource // of the kernel, or of a file
	processes() []*candidate
	threadNames() []*candidate
	users() []*candidate
}

// cursor stands for the word that is completed, while the words are put in order.
const cursor = "\x00"

// complete says what the last of the arguments may become.
func complete(system systemSource, args []string) answer {
	word := ""
	if len(args) > 0 {
		word, args = args[len(args)-1], args[:len(args)-1]
	}
	d := readDraft(append(args[:len(args):len(args)], cursor))
	switch {
	case d.behind != nil && subcommandOf(d.operands).takesCommand():
		return answer{kind: commandLine}
	case d.behind == nil && d.atCursor() != "":
		return completeValue(optionOf(d.operands, d.atCursor()), system, "", word)
	case d.behind == nil && strings.HasPrefix(word, "--") && strings.Contains(word, "="):
		name, value, _ := strings.Cut(word, "=")
		return completeValue(optionOf(d.operands, name[2:]), system, name+"=", value)
	case d.behind == nil && strings.HasPrefix(word, "-"):
		return answer{wholeWords, beginning(word, optionNames(d.operands))}
	}
	before := slices.DeleteFunc(append(d.operands, d.behind...), func(o string) bool { return o == cursor })
	return completeOperand(system.types(d.options["btf"]), before, word)
}

// atCursor is the option whose value is completed; "": none is.
func (d draft) atCursor() string {
	for name, value := range d.options {
		if value == cursor {
			return name
		}
	}
	return ""
}

// completeOperand completes what is neither an option nor its value.
func completeOperand(types typeSource, before []string, word string) answer {
	if len(before) == 0 {
		first := beginning(word, append(commands(), &candidate{text: "help", note: "explain a command, or the language"}))
		if len(first) > 0 {
			return answer{wholeWords, first} // of functions there are too many with any beginning
		}
	} else if before[0] == "help" {
		return answer{wholeWords, beginning(word, append(commands(), &candidate{text: "spec", note: "the language"}))}
	}
	switch takes := subcommandOf(before).operands; {
	case takes == "":
		return answer{kind: wholeWords}
	case strings.HasPrefix(takes, "FILE"):
		return answer{kind: files}
	case strings.Contains(takes, "PROBEFILE"):
		found := completeSpec(types, word, false)
		if word == "" || len(found) == 0 {
			return answer{kind: files}
		}
		return parts(word, found)
	case takes == "TYPE":
		return parts(word, completeType(types, word))
	case strings.Contains(takes, "|"):
		return answer{wholeWords, beginning(word, candidatesOf(strings.Split(takes, "|")))}
	default:
		return parts(word, completeSpec(types, word, takes == "GLOB..." || takes == "FUNCTION..."))
	}
}

// completeType completes the name of a type, as dump takes it.
func completeType(source typeSource, word string) (found []*candidate) {
	types := source.kernel()
	if types == nil {
		return nil
	}
	kinds := []int{kindStruct, kindUnion, kindEnum, kindEnum64, kindTypedef}
	before, name := "", word
	if kind, bare, ok := strings.Cut(word, " "); ok {
		before, name, kinds = kind+" ", bare, []int{cmp.Or(recordKinds[kind], kindFuncProto)}
	}
	types.of(name, func(name string, _ uint32) {
		if plainName(name) == name {
			found = append(found, &candidate{text: before + name})
		}
	}, kinds...)
	return found
}

func commands() (all []*candidate) {
	for _, s := range subcommands() {
		all = append(all, &candidate{text: s.name, note: s.usage})
	}
	return all
}

func candidatesOf(texts []string) (all []*candidate) {
	for _, t := range texts {
		all = append(all, &candidate{text: t})
	}
	return all
}

func beginning(word string, all []*candidate) []*candidate {
	return slices.DeleteFunc(all, func(c *candidate) bool { return !strings.HasPrefix(c.text, word) })
}

// mostCandidates is how many names are worth to be shown: of more, it is the next
// part of each.
const mostCandidates = 400

// parts makes an answer of words that may grow. The only one comes with what may
// follow: a shell that sees one word alone would end it.
func parts(word string, all []*candidate) answer {
	slices.SortFunc(all, func(a, b *candidate) int { return cmp.Compare(a.text, b.text) })
	all = slices.CompactFunc(all, func(a, b *candidate) bool { return a.text == b.text })
	if len(all) > mostCandidates {
		return answer{wordParts, nextParts(word, all)}
	}
	if len(all) != 1 {
		return answer{wordParts, all}
	}
	only := all[0]
	if len(only.more) == 0 {
		return answer{wholeWords, all}
	}
	for _, more := range only.more {
		all = append(all, &candidate{text: only.text + more, note: only.note})
	}
	return answer{wordParts, all}
}

// nextParts cuts names behind the next underscore.
func nextParts(word string, all []*candidate) (next []*candidate) {
	for _, c := range all {
		text := c.text
		if i := strings.IndexByte(text[len(word):], '_'); i >= 0 && i+1 < len(text[len(word):]) {
			text = text[:len(word)+i+1]
		}
		if len(next) == 0 || next[len(next)-1].text != text {
			next = append(next, &candidate{text: text})
		}
	}
	return next
}
