package main

import (
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
	w    io.Writer
	rest []byte // the beginning of a character that comes in two pieces
}

// Write writes text, but for the beginning of a character at its end.
func (p *plainWriter) Write(text []byte) (int, error) {
	if len(p.rest) == 0 && isPlainASCII(text) {
		return p.w.Write(text)
	}
	all := append(p.rest, text...)
	plain := make([]byte, 0, len(all))
	for len(all) > 0 && utf8.FullRune(all) {
		switch r, size := utf8.DecodeRune(all); {
		case r == '\n', r == '\t', strconv.IsPrint(r) && (r != utf8.RuneError || size > 1):
			plain, all = append(plain, all[:size]...), all[size:]
		default:
			plain, all = append(plain, '?'), all[size:]
		}
	}
	p.rest = all
	if _, err := p.w.Write(plain); err != nil {
		return 0, err
	}
	return len(text), nil
}

func isPlainASCII(text []byte) bool {
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
