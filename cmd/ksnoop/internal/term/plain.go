package term

import (
	"encoding/binary"
	"io"
	"strconv"
	"unicode/utf8"
)

// PlainWriter filters all output, so that a terminal obeys nothing that comes from
// the kernel, a file or the command line. Line ends, tabs and printable characters
// pass. Each other character, and each invalid byte of UTF-8, becomes a question
// mark, so that columns stay aligned. Strings of the kernel have been escaped
// before, without loss.
type PlainWriter struct {
	w     io.Writer
	rest  []byte // the beginning of an incomplete character
	color bool   // lines are coloured
	line  []byte // the beginning of an incomplete line to colour
}

// NewPlain returns a writer that makes text plain and writes it to w.
func NewPlain(w io.Writer) *PlainWriter { return &PlainWriter{w: w} }

// Write writes text, except for an incomplete character at its end.
func (p *PlainWriter) Write(text []byte) (int, error) {
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

// appendPlain appends text in plain form, and returns an incomplete character at its
// end as rest.
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

// isPlainASCII reports whether all of text is printable ASCII. It checks eight bytes
// at a time.
func isPlainASCII(text []byte) bool {
	for ; len(text) >= 8; text = text[8:] {
		if word := binary.LittleEndian.Uint64(text); unusual(word) != 0 && !allPlain(text[:8]) {
			return false
		}
	}
	return allPlain(text)
}

// unusual returns nonzero if a byte of word is less than a blank, or 0x7f or more: a
// subtraction or an addition then sets its highest bit, if it is not set already.
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

// FileOf returns the writer below a PlainWriter: for a command, and for control
// sequences of ksnoop itself.
func FileOf(w io.Writer) io.Writer {
	for {
		wrapper, ok := w.(interface{ Unwrap() io.Writer })
		if !ok {
			return w
		}
		w = wrapper.Unwrap()
	}
}

// Unwrap returns the underlying writer.
func (p *PlainWriter) Unwrap() io.Writer { return p.w }
