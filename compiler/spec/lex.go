package spec

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// kind is a class of tokens.
type kind uint8

const (
	end     kind = iota // the end of the text
	name                // an identifier, including 'return' and 'if'
	number              // a digit and all letters, digits and dots that follow
	quoted              // a string or a character, with its quotes
	compare             // a run of = ! < >
	punct               // "->", "&&", "||" or another single character
)

// token is the smallest unit of a spec.
type token struct {
	kind kind
	text string
	at   Span
}

// is reports whether t is the punctuation text. It is not inlined: it has 270 callers.
//
//go:noinline
func (t token) is(text string) bool { return t.kind == punct && t.text == text }

// String returns the name of t in messages.
func (t token) String() string {
	switch t.kind {
	case end:
		return "the end of the spec"
	case quoted:
		return cut(t.text)
	default:
		return Quote(t.text)
	}
}

// longestName is the kernel's limit: KSYM_NAME_LEN without the final NUL (since
// Linux 6.1; 127 before).
const longestName = 511

// lexer splits a text into tokens.
type lexer struct {
	text string
	pos  int
}

// errorf returns an error at a place in the text. It is not inlined: it has 100 callers.
//
//go:noinline
func (l *lexer) errorf(at Span, format string, args ...any) *Error {
	return Errorf(l.text, at, format, args...)
}

// function returns the next token. A name may have dots and wildcards.
func (l *lexer) function() (token, error) {
	last := l.pos
	l.skip(IsBlank)
	start := l.pos
	for l.skip(isPattern); l.class(); l.skip(isPattern) {
	}
	switch t := l.token(name, start); {
	case t.text == "", t.text[0] == '.':
		l.pos = last
		return l.next()
	case IsDigit(t.text[0]):
		t.kind = number
		return t, nil
	default:
		return l.checkName(t)
	}
}

// class moves past the brackets of a wildcard. It returns false if there are none
// at the current position, or if they are not closed.
func (l *lexer) class() bool {
	if l.pos == len(l.text) || l.text[l.pos] != '[' {
		return false
	}
	l.skip(isInClass)
	if l.pos == len(l.text) || l.text[l.pos] != ']' {
		return false
	}
	l.pos++
	return true
}

// next returns the next token. At the end of the text it returns a token of kind
// end each time.
func (l *lexer) next() (token, error) {
	last := l.pos
	l.skip(IsBlank)
	start := l.pos
	if start == len(l.text) {
		return token{kind: end, at: Span{last, last}}, nil
	}
	switch c := l.text[start]; {
	case IsDigit(c):
		l.skip(isDotted)
		return l.token(number, start), nil
	case IsWord(c):
		l.skip(IsWord)
		return l.checkName(l.token(name, start))
	case isCompare(c):
		if l.skip(isCompare); l.pos > start {
			return l.token(compare, start), nil
		}
	case c == '"' || c == '\'':
		return l.quoted()
	case !isPrintable(c):
		return token{}, l.foreign()
	}
	l.pos++
	if pair := l.text[start:min(start+2, len(l.text))]; pair == "->" || pair == "&&" || pair == "||" {
		l.pos++
	}
	return l.token(punct, start), nil
}

// skip skips bytes for which in returns true.
func (l *lexer) skip(in func(byte) bool) {
	for l.pos < len(l.text) && in(l.text[l.pos]) {
		l.pos++
	}
}

// token returns the token from start to the current position.
func (l *lexer) token(k kind, start int) token {
	return token{kind: k, text: l.text[start:l.pos], at: Span{start, l.pos}}
}

func (l *lexer) checkName(t token) (token, error) {
	if len(t.text) > longestName {
		return token{}, l.errorf(t.at, "a name of %d characters is longer than any in the kernel (%d)",
			len(t.text), longestName)
	}
	return t, nil
}

// lookalikes has characters that text processors insert in place of those that
// specs use.
var lookalikes = map[rune]string{
	'\u00a0': "a plain blank",
	'\u2010': "-", '\u2011': "-", '\u2012': "-", '\u2013': "-", '\u2014': "-", '\u2212': "-",
	'\u2018': "'", '\u2019': "'", '\u201c': `"`, '\u201d': `"`, '\u00b5': "u", '\u03bc': "u",
	'\u2192': "->", '\u2260': "!=", '\u2264': "<=", '\u2265': ">=",
}

// foreign returns the error for the character at the current position, which is not
// printable ASCII.
func (l *lexer) foreign() *Error {
	r, size := utf8.DecodeRuneInString(l.text[l.pos:])
	char := fmt.Sprintf("%U", r)
	if r == utf8.RuneError && size == 1 {
		char = fmt.Sprintf("byte 0x%02x", l.text[l.pos])
	}
	err := l.errorf(Span{l.pos, l.pos + size}, "%s at position %d: a spec is plain ASCII text", char, l.pos+1)
	if plain, ok := lookalikes[r]; ok {
		err.WithHint("write %s", plain)
	}
	return err
}

// CheckText returns an error if text has other characters than printable ASCII and
// blanks.
func CheckText(text string) error {
	at := strings.IndexFunc(text, func(r rune) bool { return r > '~' || !isPrintable(byte(r)) && !IsBlank(byte(r)) })
	if at < 0 {
		return nil
	}
	l := &lexer{text: text, pos: at}
	return l.foreign()
}

func isDotted(c byte) bool  { return c == '.' || IsWord(c) }
func isCompare(c byte) bool { return strings.IndexByte("=!<>", c) >= 0 }
func isPattern(c byte) bool { return isDotted(c) || c == '*' || c == '?' }

// isInClass reports whether c may be in the brackets of a wildcard, or is the
// opening bracket.
func isInClass(c byte) bool { return isDotted(c) || strings.IndexByte("*?[!^-", c) >= 0 }

// IsBlank reports whether c is white space.
func IsBlank(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// IsDigit reports whether c is a decimal digit.
func IsDigit(c byte) bool { return '0' <= c && c <= '9' }

// IsWord reports whether names of C may contain c.
func IsWord(c byte) bool { return c == '_' || IsDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' }

func isPrintable(c byte) bool { return ' ' <= c && c <= '~' }

// IsName reports whether name can be the name of a function or an argument in a
// spec. Invalid BTF may have other names, with control characters for a terminal.
func IsName(name string) bool {
	for i := range len(name) {
		if !isPrintable(name[i]) || IsBlank(name[i]) {
			return false
		}
	}
	return name != ""
}
