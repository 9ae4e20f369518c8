package spec

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// longestString is the largest number of bytes in a string constant, without escapes.
const longestString = 255

// quoted returns the string or the character that begins at the current
// position.
func (l *lexer) quoted() (token, error) {
	start := l.pos
	for l.pos++; l.pos < len(l.text); l.pos++ {
		switch c := l.text[l.pos]; {
		case c == l.text[start]:
			l.pos++
			return l.token(quoted, start), nil
		case !isPrintable(c):
			_, size := utf8.DecodeRuneInString(l.text[l.pos:])
			return token{}, l.foreign().WithHint("in quotes it is written %s", escape(l.text[l.pos:l.pos+size], 0))
		case c == '\\' && l.pos+1 < len(l.text) && isPrintable(l.text[l.pos+1]):
			l.pos++
		}
	}
	what := "string"
	if l.text[start] == '\'' {
		what = "character"
	}
	return token{}, l.errorf(Span{start, start + 1}, "the %s has no closing %c", what, l.text[start])
}

// unescape returns the character at the beginning of text and the number of bytes
// that it is written with, or 0 if it is an invalid escape.
func unescape(text string) (c byte, size int) {
	switch {
	case text[0] != '\\':
		return text[0], 1
	case len(text) < 2:
		return 0, 0
	case text[1] == 'x':
		return unescapeHex(text)
	}
	i := strings.IndexByte(`nt0\'"`, text[1])
	if i < 0 {
		return 0, 0
	}
	return "\n\t\x00\\'\""[i], 2
}

// unescapeHex does the same as unescape for \xNN.
func unescapeHex(text string) (c byte, size int) {
	if len(text) < 4 || !only(text[2:4], hexadecimal) {
		return 0, 0
	}
	n, _ := strconv.ParseUint(text[2:4], 16, 8)
	return byte(n), 4
}

// escape returns text with escapes, for use in quotes of this kind.
func escape(text string, quote byte) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		switch {
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\\', c == quote:
			b.Write([]byte{'\\', c})
		case isPrintable(c):
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String()
}

// str parses a string. tok must be one.
func (p *parser) str() (c Constant, err error) {
	c = Constant{Kind: String, Text: p.tok.text, At: p.tok.at}
	if c.Str, err = p.meaning(); err != nil {
		return c, err
	}
	switch nul := strings.IndexByte(c.Str, 0); {
	case nul >= 0:
		at := p.tok.at.Start + 1 + written(c.Text[1:], nul)
		return c, p.errorf(Span{at, at + written(p.text[at:], 1)}, "a string in the kernel ends before its first zero byte")
	case len(c.Str) > longestString:
		return c, p.errorf(p.tok.at, "a string of %d bytes is longer than the limit (%d)", len(c.Str), longestString)
	}
	return c, p.advance()
}

// char parses a character. tok must be one.
func (p *parser) char() (c Constant, err error) {
	c = Constant{Text: p.tok.text, At: p.tok.at}
	char, err := p.meaning()
	switch {
	case err != nil:
		return c, err
	case char == "":
		return c, p.errorf(p.tok.at, "a character is missing between the quotes").
			WithHint(`the empty string is written ""`)
	case len(char) > 1 && char[0] == 0:
		return c, p.errorf(p.tok.at, "%s is more than one character", p.tok).
			WithHint(`a character is written by its number in hexadecimal: '\x0a'`)
	case len(char) > 1:
		return c, p.errorf(p.tok.at, "%s is more than one character", p.tok).
			WithHint(`a string is written with double quotes: "%s"`, escape(char, '"'))
	}
	c.Abs = uint64(char[0])
	return c, p.advance()
}

// meaning returns the text in the quotes of tok, without escapes.
func (p *parser) meaning() (string, error) {
	var b strings.Builder
	for at, last := p.tok.at.Start+1, p.tok.at.End-1; at < last; {
		c, size := unescape(p.text[at:last])
		if size == 0 {
			return "", p.badEscape(at, last)
		}
		b.WriteByte(c)
		at += size
	}
	return b.String(), nil
}

// badEscape returns the error for the invalid escape at an offset of the text.
func (p *parser) badEscape(at, last int) error {
	if p.text[at+1] == 'x' {
		return p.errorf(Span{at, min(at+4, last)}, `\x needs two hexadecimal digits`)
	}
	return p.errorf(Span{at, at + 2}, "%s is not an escape", Quote(p.text[at:at+2])).
		WithHint(`the escapes are \n \t \0 \\ \' \" and \xNN; a backslash is written \\`)
}

// written returns the number of bytes that the first n characters of text are
// written with. The text must be valid and without its quotes.
func written(text string, n int) (bytes int) {
	for range n {
		_, size := unescape(text[bytes:])
		bytes += size
	}
	return bytes
}
