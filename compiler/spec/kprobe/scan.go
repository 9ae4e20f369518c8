package kprobe

import (
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

const digits = "0123456789"

// split splits a line into words. Strings such as \"a b" may have blanks.
func split(text string) []spec.Span {
	var words []spec.Span
	for at := 0; at < len(text); {
		if spec.IsBlank(text[at]) {
			at++
			continue
		}
		w := spec.Span{Start: at, End: wordEnd(text, at)}
		words = append(words, w)
		at = w.End
	}
	return words
}

// wordEnd returns the offset of the end of the word at an offset.
func wordEnd(text string, at int) int {
	for at < len(text) && !spec.IsBlank(text[at]) {
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

// rest returns what is left of the word.
func (p *parser) rest() string { return p.text[p.pos:p.end] }

// has reports whether the rest begins with prefix. It is not inlined: it has 110 callers.
//
//go:noinline
func (p *parser) has(prefix string) bool { return strings.HasPrefix(p.rest(), prefix) }

// accept moves past prefix if the rest begins with it, and reports whether it does.
func (p *parser) accept(prefix string) bool {
	ok := p.has(prefix)
	if ok {
		p.pos += len(prefix)
	}
	return ok
}

// run moves past the bytes for which in returns true, and returns them.
func (p *parser) run(in func(byte) bool) spec.Ident {
	start := p.pos
	for p.pos < p.end && in(p.text[p.pos]) {
		p.pos++
	}
	return spec.Ident{Name: p.text[start:p.pos], At: p.from(start)}
}

// from returns the place from start to the current position.
func (p *parser) from(start int) spec.Span { return spec.Span{Start: start, End: p.pos} }

// at returns the place of the next n bytes.
func (p *parser) at(n int) spec.Span {
	return spec.Span{Start: p.pos, End: min(p.pos+n, p.end)}
}

// token returns the place of the next token and its name in messages. A token is a
// name or a number, which may have a mark such as $ before it, an operator or another
// character.
func (p *parser) token() (at spec.Span, what string) {
	ahead := *p
	if p.pos < p.end && strings.IndexByte("$%@", p.text[p.pos]) >= 0 {
		ahead.pos++
	}
	switch ahead.run(spec.IsWord); {
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

// expected returns the error for an unexpected token, where what names the expected one.
// Like errorf, it is not inlined.
//
//go:noinline
func (p *parser) expected(what string) *spec.Error {
	at, found := p.token()
	return p.errorf(at, "expected %s, not %s", what, found)
}

// errorf returns an error at a place of the line. It is not inlined, because many places
// call it, and seldom.
//
//go:noinline
func (p *parser) errorf(at spec.Span, format string, args ...any) *spec.Error {
	return spec.Errorf(p.text, at, format, args...)
}

func isDotted(c byte) bool { return c == '.' || spec.IsWord(c) }
func isGlob(c byte) bool   { return isDotted(c) || strings.IndexByte("*?[]!^-", c) >= 0 }

// isIdentifier reports whether text is a C identifier.
func isIdentifier(text string) bool {
	if text == "" || spec.IsDigit(text[0]) {
		return false
	}
	for i := range len(text) {
		if !spec.IsWord(text[i]) {
			return false
		}
	}
	return true
}
