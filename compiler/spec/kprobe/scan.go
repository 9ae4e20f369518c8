package kprobe

import (
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

const digits = "0123456789"

// split cuts a line into words. There may be blanks in a string, \"a b".
func split(text string) []spec.Span {
	var words []spec.Span
	for at := 0; at < len(text); {
		if isBlank(text[at]) {
			at++
			continue
		}
		w := spec.Span{Start: at, End: wordEnd(text, at)}
		words = append(words, w)
		at = w.End
	}
	return words
}

// wordEnd returns where the word at a place ends.
func wordEnd(text string, at int) int {
	for at < len(text) && !isBlank(text[at]) {
		if !strings.HasPrefix(text[at:], `\"`) {
			at++
			continue
		}
		length := strings.IndexByte(text[at+2:], '"')
		if length < 0 {
			return len(text)
		}
		at += 2 + length + 1
	}
	return at
}

// open begins to read a word.
func (p *parser) open(w spec.Span) { p.pos, p.end = w.Start, w.End }

func (p *parser) word(w spec.Span) string { return p.text[w.Start:w.End] }

// rest is what has not been read of the word.
func (p *parser) rest() string { return p.text[p.pos:p.end] }

// has reports whether the rest begins with this.
func (p *parser) has(prefix string) bool { return strings.HasPrefix(p.rest(), prefix) }

// accept moves behind this, if the rest begins with it.
func (p *parser) accept(prefix string) bool {
	ok := p.has(prefix)
	if ok {
		p.pos += len(prefix)
	}
	return ok
}

// run moves on as long as in holds, and returns what it was.
func (p *parser) run(in func(byte) bool) spec.Ident {
	start := p.pos
	for p.pos < p.end && in(p.text[p.pos]) {
		p.pos++
	}
	return spec.Ident{Name: p.text[start:p.pos], At: p.from(start)}
}

// from is the place from start to the current position.
func (p *parser) from(start int) spec.Span { return spec.Span{Start: start, End: p.pos} }

// at is the place of the next n bytes.
func (p *parser) at(n int) spec.Span {
	return spec.Span{Start: p.pos, End: min(p.pos+n, p.end)}
}

// token returns what stands at the current position and what to call it: a
// name or a number, perhaps with what marks it, an operator or another
// character.
func (p *parser) token() (at spec.Span, what string) {
	ahead := *p
	if p.pos < p.end && strings.IndexByte("$%@", p.text[p.pos]) >= 0 {
		ahead.pos++
	}
	switch ahead.run(isWord); {
	case p.pos == p.end:
		return p.at(0), "the end"
	case ahead.pos == p.pos && (p.has("->") || p.has("&&") || p.has("||") || p.has("==")):
		ahead.pos += 2
	case ahead.pos == p.pos:
		ahead.pos++
	}
	at = ahead.from(p.pos)
	return at, spec.Quote(p.word(at))
}

// expected refuses what stands at the current position.
func (p *parser) expected(what string) *spec.Error {
	at, found := p.token()
	return p.errorf(at, "expected %s, not %s", what, found)
}

func (p *parser) errorf(at spec.Span, format string, args ...any) *spec.Error {
	return spec.Errorf(p.text, at, format, args...)
}

func isBlank(c byte) bool  { return c == ' ' || '\t' <= c && c <= '\r' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isWord(c byte) bool   { return c == '_' || isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' }
func isDotted(c byte) bool { return c == '.' || isWord(c) }
func isGlob(c byte) bool   { return isDotted(c) || strings.IndexByte("*?[]!^-", c) >= 0 }

// isName reports whether a text is a C identifier.
func isName(text string) bool {
	if text == "" || isDigit(text[0]) {
		return false
	}
	for i := range len(text) {
		if !isWord(text[i]) {
			return false
		}
	}
	return true
}
