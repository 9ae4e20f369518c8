package suite

import (
	"errors"
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

const digits = "0123456789"

// line is a line of a probe file that is being read.
type line struct {
	text string // without its comment
	from spec.Source
	pos  int
	spec int // the offset of the latest spec
}

// word is a word of a line, outside of specs.
type word struct {
	text string
	at   spec.Span
}

// skip moves past blanks.
func (l *line) skip() {
	for l.pos < len(l.text) && spec.IsBlank(l.text[l.pos]) {
		l.pos++
	}
}

// end reports whether nothing is left.
func (l *line) end() bool {
	l.skip()
	return l.pos == len(l.text)
}

// word returns the text up to the next blank. At the end of the line it is empty.
func (l *line) word() word {
	l.skip()
	start := l.pos
	for l.pos < len(l.text) && !spec.IsBlank(l.text[l.pos]) {
		l.pos++
	}
	return l.since(start)
}

// token returns the next token of a condition: a name, a number, an operator or
// another character. At the end of the line it is empty.
func (l *line) token() word {
	l.skip()
	start := l.pos
	for _, in := range []func(byte) bool{isNameByte, isOperator} {
		for l.pos < len(l.text) && in(l.text[l.pos]) {
			l.pos++
		}
		if l.pos > start {
			return l.since(start)
		}
	}
	l.pos = min(l.pos+1, len(l.text))
	return l.since(start)
}

// peek returns the next token without moving past it.
func (l *line) peek() word {
	ahead := *l
	return ahead.token()
}

func (l *line) since(start int) word {
	return word{l.text[start:l.pos], spec.Span{Start: start, End: l.pos}}
}

// errorf returns an error at a place of the line. It is not inlined, because many places
// call it, and seldom.
//
//go:noinline
func (l *line) errorf(at spec.Span, format string, args ...any) *spec.Error {
	err := spec.Errorf(l.text, at, format, args...)
	err.From = l.from
	return err
}

// missing returns the error for w, an unexpected word or the end of the line. What
// describes the expected one.
func (l *line) missing(what string, w word) *spec.Error {
	if w.text == "" {
		end := len(strings.TrimRight(l.text, " \t"))
		return l.errorf(spec.Span{Start: end, End: end}, "%s is missing", what)
	}
	return l.errorf(w.at, "expected %s, not %s", what, spec.Quote(w.text))
}

// rest refuses any text that is left on the line.
func (l *line) rest(behind string) error {
	if l.end() {
		return nil
	}
	w := l.word()
	err := l.errorf(w.at, "%s behind %s", spec.Quote(w.text), behind)
	if strings.HasPrefix(w.text, "-") && len(w.text) > 1 {
		return err.WithHint("there are no options in a probe file")
	}
	return err
}

// adopt makes an error of another parser an error about this line, and adds by to
// its offsets.
func (l *line) adopt(err error, by int) error {
	var refusal *spec.Error
	if errors.As(err, &refusal) {
		refusal.Text, refusal.From = l.text, l.from
		refusal.At.Start += by
		refusal.At.End += by
	}
	return err
}

// oneOf reads a word that must be one of words.
func (l *line) oneOf(what string, words []string) (string, error) {
	w := l.token()
	if slices.Contains(words, w.text) {
		return w.text, nil
	}
	return "", l.unknown(w, what, words)
}

// unknown returns the error for a word that is not one of words.
func (l *line) unknown(w word, what string, words []string) *spec.Error {
	var err *spec.Error
	if w.text == "" {
		err = l.missing(what, w)
	} else {
		err = l.errorf(w.at, "%s is not %s", spec.Quote(w.text), what)
	}
	switch near, ok := spec.Nearest(w.text, slices.Values(words)); {
	case ok:
		return err.WithMeant("%s", near)
	case strings.HasPrefix(w.text, "#"):
		return err.WithHint("a comment begins with a blank and '#'")
	case len(words) == 1:
		return err.WithHint("write '%s'", words[0])
	default:
		return err.WithHint("write one of %s", strings.Join(words, ", "))
	}
}

func isOperator(c byte) bool { return strings.IndexByte("=!<>", c) >= 0 }

func isNameByte(c byte) bool {
	return c == '-' || c == '.' || spec.IsWord(c)
}

// isNumber reports whether text is a decimal number.
func isNumber(text string) bool {
	return text != "" && strings.Trim(text, digits) == "" && (text[0] != '0' || text == "0")
}
