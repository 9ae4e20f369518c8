package main

import (
	"encoding/binary"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// plainWriter is what all output goes through: a terminal must obey nothing
// that comes from the kernel, a file or the command line. Line ends, tabs and
// what a terminal shows pass; each other character, and each byte that is no
// UTF-8, becomes a question mark, so that columns stay where they are. Strings
// of the kernel were escaped before, without loss.
type plainWriter struct {
	w     io.Writer
	rest  []byte // the beginning of a character that comes in two pieces
	color bool   // lines are painted
	line  []byte // the beginning of a line that is to be painted
}

// Write writes text, but for the beginning of a character at its end.
func (p *plainWriter) Write(text []byte) (int, error) {
	if p.color {
		return p.paint(text)
	}
	if len(p.rest) == 0 && isPlainASCII(text) {
		return p.w.Write(text)
	}
	all := append(p.rest, text...)
	plain, rest := appendPlain(make([]byte, 0, len(all)), all)
	p.rest = rest
	if _, err := p.w.Write(plain); err != nil {
		return 0, err
	}
	return len(text), nil
}

// appendPlain appends text as a terminal may see it, but for the beginning of a
// character at its end.
func appendPlain(dst, text []byte) (plain, rest []byte) {
	for len(text) > 0 && utf8.FullRune(text) {
		switch r, size := utf8.DecodeRune(text); {
		case r == '\n', r == '\t', strconv.IsPrint(r) && (r != utf8.RuneError || size > 1):
			dst, text = append(dst, text[:size]...), text[size:]
		default:
			dst, text = append(dst, '?'), text[size:]
		}
	}
	return dst, text
}

// isPlainASCII looks at eight bytes at a time: it sees all that is shown.
func isPlainASCII(text []byte) bool {
	for ; len(text) >= 8; text = text[8:] {
		if word := binary.LittleEndian.Uint64(text); unusual(word) != 0 && !allPlain(text[:8]) {
			return false
		}
	}
	return allPlain(text)
}

// unusual is not zero if one of the bytes of a word is below a blank, or 0x7f or
// above: then its highest bit becomes set by a subtraction or an addition, or is.
func unusual(word uint64) uint64 {
	const ones = 0x0101010101010101
	return ((word - ones*' ') | (word + ones) | word) & (ones << 7)
}

func allPlain(text []byte) bool {
	for _, c := range text {
		if (c < ' ' || c > '~') && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// plainName is a name of the kernel, or of a file, that stays on its line.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, name)
}

// fileOf is what a writer of ours writes to: for a command, and for what a
// terminal is to obey.
func fileOf(w io.Writer) io.Writer {
	if p, ok := w.(*plainWriter); ok {
		w = p.w
	}
	if o, ok := w.(*stdout); ok {
		return o.file
	}
	return w
}
