package btfdump

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// AppendString appends the C string at the start of s, up to its NUL or the end
// of s, in quotes and with C escapes: `"eth0"`, `"\033[2J"`. The result is valid
// UTF-8 and has no control characters, so it is safe to print on a terminal.
func AppendString(dst, s []byte) []byte {
	if n := bytes.IndexByte(s, 0); n >= 0 {
		s = s[:n]
	}
	return appendQuoted(dst, s)
}

// appendQuoted appends all of s, in quotes and with C escapes.
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

// printable reports whether r can be printed on a terminal without an escape. It
// excludes C1 controls and the characters that change the direction of writing.
func printable(r rune, size int) bool {
	if r < utf8.RuneSelf {
		return r >= ' ' && r <= '~'
	}
	return (r != utf8.RuneError || size > 1) && strconv.IsPrint(r)
}

// named reports whether c is a control character that C escapes with a letter.
func named(c byte) bool { return c >= '\a' && c <= '\r' }

// appendOctal escapes each byte with three octal digits. With \x a digit that
// follows would become part of the escape.
func appendOctal(dst, s []byte) []byte {
	for _, c := range s {
		dst = append(dst, '\\', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
	}
	return dst
}

// isText reports whether b holds a string: whether the bytes up to the first NUL
// are text. NULs at the beginning are skipped, since abstract socket names begin
// with one. The last character may be incomplete, since names are often cut.
func isText(b []byte) bool {
	for b = bytes.TrimLeft(b, "\x00"); len(b) > 0 && b[0] != 0; {
		r, n := utf8.DecodeRune(b)
		if !printable(r, n) && !named(b[0]) {
			return !utf8.FullRune(b)
		}
		b = b[n:]
	}
	return true
}

func trimZeros(b []byte) []byte { return bytes.TrimRight(b, "\x00") }

// Plain returns a name with question marks in place of the characters that are unsafe on
// a terminal, and of bytes that are not UTF-8. BTF that a kernel has accepted has none,
// but a file may.
func Plain(name string) string { return strings.Map(plainRune, name) }

func plainRune(r rune) rune {
	if r == utf8.RuneError || !strconv.IsPrint(r) {
		return '?'
	}
	return r
}

// appendPlain appends what Plain returns.
func appendPlain(dst []byte, name string) []byte {
	if isPlain(name) {
		return append(dst, name...)
	}
	for _, r := range name {
		dst = utf8.AppendRune(dst, plainRune(r))
	}
	return dst
}

// isPlain reports whether a name consists of characters that mean themselves in every
// format, as those of C do.
func isPlain(name string) bool {
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// AppendJSONString appends the C string at the start of s, up to its NUL or the
// end of s, as a JSON string. The result is valid for any bytes and has no control
// characters: they become \n, \t, or \u and four digits. Bytes that are not UTF-8
// become U+FFFD.
func AppendJSONString(dst, s []byte) []byte {
	if n := bytes.IndexByte(s, 0); n >= 0 {
		s = s[:n]
	}
	return appendJSONString(dst, s)
}

// appendJSONString appends s in quotes. Characters that are not printable become
// \n, \t, or \u and four digits, twice above U+FFFF. Each byte that is not UTF-8
// becomes U+FFFD, since JSON has no way to write it.
func appendJSONString(dst, s []byte) []byte {
	dst = append(dst, '"')
	for len(s) > 0 {
		r, n := rune(s[0]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(s)
		}
		dst = appendJSONRune(dst, r)
		s = s[n:]
	}
	return append(dst, '"')
}

// appendJSONName appends a name without quotes.
func appendJSONName(dst []byte, name string) []byte {
	if isPlain(name) {
		return append(dst, name...)
	}
	for _, r := range name {
		dst = appendJSONRune(dst, r)
	}
	return dst
}

func appendJSONRune(dst []byte, r rune) []byte {
	switch {
	case r == '"' || r == '\\':
		return append(dst, '\\', byte(r))
	case r >= ' ' && r <= '~':
		return append(dst, byte(r))
	case r >= utf8.RuneSelf && r != utf8.RuneError && strconv.IsPrint(r):
		return utf8.AppendRune(dst, r)
	case r == '\n':
		return append(dst, `\n`...)
	case r == '\t':
		return append(dst, `\t`...)
	case r > 0xffff:
		// The escape is a surrogate pair.
		r -= 0x10000
		dst = appendJSONUnit(dst, 0xd800+uint16(r>>10))
		return appendJSONUnit(dst, 0xdc00+uint16(r&0x3ff))
	}
	return appendJSONUnit(dst, uint16(r))
}

func appendJSONUnit(dst []byte, u uint16) []byte {
	return append(dst, '\\', 'u', hexDigits[u>>12], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
}

// JSONString is a string that package encoding/json encodes as AppendJSONString does.
type JSONString string

// MarshalJSON implements [encoding/json.Marshaler].
func (s JSONString) MarshalJSON() ([]byte, error) { return AppendJSONString(nil, []byte(s)), nil }
