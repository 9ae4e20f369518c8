package btfdump

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// AppendString appends the C string at the start of s, up to its NUL or the end
// of s, in quotes and with C escapes: `"eth0"`, `"\033[2J"`. The result is valid
// UTF-8 and holds no control character, so it is safe to show in a terminal.
func AppendString(dst, s []byte) []byte {
	if n := bytes.IndexByte(s, 0); n >= 0 {
		s = s[:n]
	}
	return appendQuoted(dst, s)
}

// appendQuoted appends all of s.
func appendQuoted(dst, s []byte) []byte {
	dst = append(dst, '"')
	for len(s) > 0 {
		r, n := rune(s[0]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(s)
		}
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', s[0])
		case printable(r, n):
			dst = append(dst, s[:n]...)
		case named(s[0]):
			dst = append(dst, '\\', "abtnvfr"[s[0]-'\a'])
		default:
			dst = appendOctal(dst, s[:n])
		}
		s = s[n:]
	}
	return append(dst, '"')
}

// printable tells what a terminal shows as it is. It excludes C1 controls and
// the characters that change the direction of writing.
func printable(r rune, size int) bool {
	if r < utf8.RuneSelf {
		return r >= ' ' && r <= '~'
	}
	return (r != utf8.RuneError || size > 1) && strconv.IsPrint(r)
}

// named tells the control characters for which C has a letter.
func named(c byte) bool { return c >= '\a' && c <= '\r' }

// appendOctal escapes bytes by three digits each: \x would swallow a digit that
// follows.
func appendOctal(dst, s []byte) []byte {
	for _, c := range s {
		dst = append(dst, '\\', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
	}
	return dst
}

// isText tells strings from bytes by what comes before the NUL, or after the
// first ones: abstract socket names begin with one. A last character may be
// incomplete, for names are often cut.
func isText(b []byte) bool {
	for len(b) > 0 && b[0] == 0 {
		b = b[1:]
	}
	for len(b) > 0 && b[0] != 0 {
		r, n := utf8.DecodeRune(b)
		if !printable(r, n) && !named(b[0]) {
			return !utf8.FullRune(b)
		}
		b = b[n:]
	}
	return true
}

func trimZeros(b []byte) []byte {
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	return b
}

// clean replaces what must not reach a terminal. BTF that a kernel accepted
// holds none, a file may.
func clean(name string) string {
	for _, r := range name {
		if r == utf8.RuneError || !strconv.IsPrint(r) {
			return string(appendClean(nil, name))
		}
	}
	return name
}

func appendClean(dst []byte, name string) []byte {
	for _, r := range name {
		if r == utf8.RuneError || !strconv.IsPrint(r) {
			r = '?'
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}
