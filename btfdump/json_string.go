package btfdump

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// AppendJSONString appends the C string at the start of s, up to its NUL or the
// end of s, as a JSON string. The result is valid whatever the bytes are and
// holds no control character: those become \u and four digits, and bytes that are
// not UTF-8 become U+FFFD.
func AppendJSONString(dst, s []byte) []byte {
	if n := bytes.IndexByte(s, 0); n >= 0 {
		s = s[:n]
	}
	return appendJSONString(dst, s)
}

// appendJSONString appends s in quotes. What a terminal would not show as it is
// becomes \u and four digits, and what is not UTF-8 the replacement character,
// byte by byte: JSON has no way to write it.
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
		// A pair of surrogates.
		r -= 0x10000
		dst = appendJSONUnit(dst, 0xd800+uint16(r>>10))
		return appendJSONUnit(dst, 0xdc00+uint16(r&0x3ff))
	}
	return appendJSONUnit(dst, uint16(r))
}

func appendJSONUnit(dst []byte, u uint16) []byte {
	return append(dst, '\\', 'u', hexDigits[u>>12], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
}
