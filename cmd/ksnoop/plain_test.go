package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever comes to a terminal is printable, and as wide as it was.
func TestPlainWriter(t *testing.T) {
	for text, want := range map[string]string{
		"plain\ttext\n":        "plain\ttext\n",
		"h\u00e9\u4e16":        "h\u00e9\u4e16",
		"\x1b[2J\r\x7f":        "?[2J??",
		"\u009b\u202e\ufeff":   "???",
		"\xff\xc3(\xe4\xb8":    "??(",
		"\ufffd":               "\ufffd",
		"a\u00a0b\U000e0001c":  "a?b?c",
		"\x9b31m\xed\xa0\x80x": "?31m???x",
	} {
		var out bytes.Buffer
		w := &plainWriter{w: &out}
		n, err := w.Write([]byte(text))
		require.NoError(t, err)
		require.Equal(t, len(text), n)
		require.Equal(t, want, out.String(), "%q", text)
		out.Reset()
		w = &plainWriter{w: &out}
		for i := range len(text) { // in pieces
			n, err := w.Write([]byte{text[i]})
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}
		require.Equal(t, want, out.String(), "%q", text)
	}
}

// FuzzPlainWriter: however it is cut, text comes out the same, printable, and
// unchanged if it was.
func FuzzPlainWriter(f *testing.F) {
	f.Add([]byte("eth0\x1b[2J\xff\u202e\xe4\xb8\x96"), uint(3))
	f.Fuzz(func(t *testing.T, text []byte, at uint) {
		cut := int(at % uint(len(text)+1))
		var whole, parts bytes.Buffer
		_, _ = (&plainWriter{w: &whole}).Write(text) // no error from a buffer
		w := &plainWriter{w: &parts}
		_, _ = w.Write(text[:cut])
		_, _ = w.Write(text[cut:])
		require.Equal(t, whole.String(), parts.String())
		require.Regexp(t, safe, whole.String())
		again := bytes.Buffer{}
		_, _ = (&plainWriter{w: &again}).Write(whole.Bytes())
		require.Equal(t, whole.String(), again.String())
	})
}

// Eight bytes at a time see what one by one do.
func TestPlainASCII(t *testing.T) {
	for n := range 18 {
		for c := range 256 {
			text := bytes.Repeat([]byte("~ "), 9)[:n]
			if n > 0 {
				text[(c+n)%n] = byte(c)
			}
			require.Equal(t, allPlain(text), isPlainASCII(text), "%q", text)
		}
	}
}
