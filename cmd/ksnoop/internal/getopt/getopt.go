// Package getopt splits command lines as getopt_long(3) does: options may be anywhere
// before --, short ones may share a word, and a value may be the next word.
package getopt

import (
	"strings"
	"unicode/utf8"
)

// Option is an option that a program has.
type Option struct {
	Name       string // the long name
	TakesValue bool
}

// Given is an option on a command line.
type Given struct {
	Option          // Name is "" if the program has no such option
	Spelled  string // the word, or the dash and the letter
	Value    string
	HasValue bool
}

// Missing reports whether an option is at the end of the line without its value.
func (g Given) Missing() bool { return g.TakesValue && !g.HasValue }

// Line is a command line.
type Line struct {
	Options  []Given // in the order of the line
	Operands []string
	Behind   []string // the words after --, or nil if there is no --
}

// Value returns the last value of an option, or "" if it was not given.
func (l *Line) Value(name string) (value string) {
	for _, o := range l.Options {
		if o.Name == name {
			value = o.Value
		}
	}
	return value
}

// Split splits the words of a command line. find returns the option with a name,
// which is a letter or a long name.
func Split(words []string, find func(name string) (Option, bool)) *Line {
	s := splitter{words: words, find: find, line: new(Line)}
	for len(s.words) > 0 {
		word := s.next()
		switch {
		case word == "--":
			s.line.Behind = append([]string{}, s.words...)
			return s.line
		case strings.HasPrefix(word, "--"):
			s.long(word)
		case strings.HasPrefix(word, "-") && word != "-":
			s.letters(word[1:])
		default:
			s.line.Operands = append(s.line.Operands, word)
		}
	}
	return s.line
}

type splitter struct {
	words []string // words still to be read
	find  func(string) (Option, bool)
	line  *Line
}

func (s *splitter) next() string {
	word := s.words[0]
	s.words = s.words[1:]
	return word
}

func (s *splitter) long(word string) {
	name, value, given := strings.Cut(word[2:], "=")
	o, _ := s.find(name)
	if len(name) < 2 {
		o = Option{} // a letter has one dash
	}
	s.add(Given{Option: o, Spelled: word, Value: value, HasValue: given})
}

// letters reads a word of short options, of which the last may have a value.
func (s *splitter) letters(rest string) {
	for rest != "" {
		_, size := utf8.DecodeRuneInString(rest)
		letter := rest[:size]
		rest = rest[size:]
		o, _ := s.find(letter)
		g := Given{Option: o, Spelled: "-" + letter}
		if value, ok := strings.CutPrefix(rest, "="); ok {
			g.Value, g.HasValue, rest = value, true, ""
		} else if o.TakesValue && rest != "" {
			g.Value, g.HasValue, rest = rest, true, ""
		}
		s.add(g)
	}
}

// add adds an option. If it needs a value, it takes the next word, whatever that is.
func (s *splitter) add(g Given) {
	if g.Missing() && len(s.words) > 0 {
		g.Value, g.HasValue = s.next(), true
	}
	s.line.Options = append(s.line.Options, g)
}
