package complete

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/btfdump/rawbtf"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/getopt"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// answer is the answer to a shell about a word.
type answer struct {
	kind       answerKind
	candidates []*candidate
}

// answerKind is the first line of an answer.
type answerKind string

const (
	wholeWords  answerKind = "words"       // complete words, each followed by a blank
	wordParts   answerKind = "parts"       // words that may be continued
	files       answerKind = "files"       // the shell completes file names
	directories answerKind = "directories" // the shell completes directory names
	commandLine answerKind = "command"     // another command begins after --
)

// systemSource provides completion with all names but those of types.
type systemSource interface {
	types(file string) typeSource // of the kernel, or of a file
	processes() []*candidate
	threadNames() []*candidate
	users() []*candidate
}

// cursor marks the word to complete, while the words are put in order.
const cursor = "\x00"

// complete returns the completions of the last argument.
func (c *Completer) complete(args []string) answer {
	word := ""
	if len(args) > 0 {
		word, args = args[len(args)-1], args[:len(args)-1]
	}
	line := c.split(append(args[:len(args):len(args)], cursor))
	switch {
	case line.Behind != nil && strings.Contains(c.command(line.Operands).Operands, "-- COMMAND"):
		return answer{kind: commandLine}
	case line.Behind == nil && atCursor(line) != "":
		return c.value(line, atCursor(line), "", word)
	case line.Behind == nil && strings.HasPrefix(word, "--") && strings.Contains(word, "="):
		name, value, _ := strings.Cut(word, "=")
		return c.value(line, name[2:], name+"=", value)
	case line.Behind == nil && strings.HasPrefix(word, "-"):
		return answer{wholeWords, beginning(word, c.optionNames(line.Operands))}
	}
	before := slices.DeleteFunc(append(line.Operands, line.Behind...), func(o string) bool { return o == cursor })
	return c.operand(c.typesOf(line), before, word)
}

// typesOf returns the types that a command line is about.
func (c *Completer) typesOf(line *getopt.Line) typeSource {
	return c.system.types(line.Value(c.types))
}

// atCursor returns the name of the option whose value is completed, or "".
func atCursor(line *getopt.Line) string {
	for _, o := range line.Options {
		if o.Value == cursor {
			return o.Name
		}
	}
	return ""
}

// operand completes a word that is neither an option nor its value.
func (c *Completer) operand(types typeSource, before []string, word string) answer {
	if len(before) == 0 {
		first := beginning(word, c.commandNames())
		if len(first) > 0 {
			return answer{wholeWords, first} // too many functions have any given beginning
		}
	} else if before[0] == "help" {
		topics := slices.DeleteFunc(c.commandNames(), func(c *candidate) bool { return c.text == "help" })
		return answer{wholeWords, beginning(word, append(topics, &candidate{text: "spec", note: "the language"}))}
	}
	switch takes := c.command(before).Operands; {
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
	case takes == "EXPR...":
		return parts(word, completeValues(types, word))
	case strings.HasPrefix(takes, "MEMORY...") && word != "" && strings.Contains("@(*", word[:1]):
		return parts(word, completeValues(types, word))
	case takes == "TYPE":
		return parts(word, completeType(types, word))
	case takes == "FUNCTION|TYPE...":
		return parts(word, append(completeSpec(types, word, true), completeType(types, word)...))
	case strings.Contains(takes, "|"):
		return answer{wholeWords, beginning(word, candidatesOf(strings.Split(takes, "|")))}
	default:
		return parts(word, completeSpec(types, word, takes == "GLOB..."))
	}
}

// completeType completes the name of a type.
func completeType(source typeSource, word string) (found []*candidate) {
	types := source.kernel()
	if types == nil {
		return nil
	}
	kinds := []rawbtf.Kind{rawbtf.Struct, rawbtf.Union, rawbtf.Enum, rawbtf.Enum64, rawbtf.Typedef}
	before, name := "", word
	if kind, bare, ok := strings.Cut(word, " "); ok {
		before, name, kinds = kind+" ", bare, []rawbtf.Kind{cmp.Or(keywordKinds[kind], rawbtf.FuncProto)}
	}
	for _, name := range types.Named(name, kinds...) {
		if render.PlainName(name) == name {
			found = append(found, &candidate{text: before + name})
		}
	}
	return found
}

func (c *Completer) commandNames() (all []*candidate) {
	for _, s := range c.commands {
		all = append(all, &candidate{text: s.Name, note: s.Usage})
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

// mostCandidates is the largest number of names to show. If there are more, only the
// next part of each is shown.
const mostCandidates = 400

// parts returns an answer of words that may be continued. A single word comes with
// its continuations, because a shell that sees just one would finish it.
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

// nextParts cuts names after the next underscore.
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
