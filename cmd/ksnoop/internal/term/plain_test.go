package term

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlainWriter verifies that all output is printable, and as wide as the input.
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
		w := &PlainWriter{w: &out}
		n, err := w.Write([]byte(text))
		require.NoError(t, err)
		require.Equal(t, len(text), n)
		require.Equal(t, want, out.String(), "%q", text)
		out.Reset()
		w = &PlainWriter{w: &out}
		for i := range len(text) { // one byte at a time
			n, err := w.Write([]byte{text[i]})
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}
		require.Equal(t, want, out.String(), "%q", text)
	}
}

// FuzzPlainWriter verifies that output does not depend on how text is cut into
// writes, is printable, and equals the input if that is printable.
func FuzzPlainWriter(f *testing.F) {
	f.Add([]byte("eth0\x1b[2J\xff\u202e\xe4\xb8\x96"), uint(3))
	f.Fuzz(func(t *testing.T, text []byte, at uint) {
		cut := int(at % uint(len(text)+1))
		var whole, parts bytes.Buffer
		_, _ = (&PlainWriter{w: &whole}).Write(text) // writing to a buffer does not fail
		w := &PlainWriter{w: &parts}
		_, _ = w.Write(text[:cut])
		_, _ = w.Write(text[cut:])
		require.Equal(t, whole.String(), parts.String())
		require.Regexp(t, safe, whole.String())
		again := bytes.Buffer{}
		_, _ = (&PlainWriter{w: &again}).Write(whole.Bytes())
		require.Equal(t, whole.String(), again.String())
	})
}

// TestPlainASCII verifies that eight bytes at a time give the same result as one by
// one.
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
