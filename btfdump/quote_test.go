package btfdump

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAppendString(t *testing.T) {
	tests := []struct{ in, want string }{
		{"eth0", `"eth0"`},
		{"", `""`},
		{"eth0\x00junk", `"eth0"`},
		{`say "hi" \o/`, `"say \"hi\" \\o/"`},
		{"\a\b\t\n\v\f\r", `"\a\b\t\n\v\f\r"`},
		{"\x1b[2J", `"\033[2J"`},
		{"\x012\x7f", `"\0012\177"`},
		{"h\u00e9\u6f22\U0001f427", `"hé漢🐧"`},
		{"\xff\xc3", `"\377\303"`},
		{"\u009b2J", `"\302\2332J"`},               // CSI as one C1 control
		{"a\u202eb", `"a\342\200\256b"`},           // right to left override
		{"\ufffd", "\"\ufffd\""},                   // the character itself, not a replacement for invalid input
		{"\xed\xa0\x80", `"\355\240\200"`},         // surrogate
		{"\u00a0\u200b", `"\302\240\342\200\213"`}, // invisible blanks
		{"\xf4\x90\x80\x80", `"\364\220\200\200"`}, // beyond Unicode
		{"\xc0\x9b", `"\300\233"`},                 // overlong
		{"/usr/bin/caf\xc3\xa9", "\"/usr/bin/caf\xc3\xa9\""},
	}
	for _, tt := range tests {
		require.Equal(t, "x"+tt.want, string(AppendString([]byte("x"), []byte(tt.in))))
	}
}

// TestAppendJSONString checks that a string in JSON ends at its NUL too.
func TestAppendJSONString(t *testing.T) {
	for in, want := range map[string]string{
		"":                    `""`,
		"eth0\x00junk":        `"eth0"`,
		"a\"b\\c":             `"a\"b\\c"`,
		"\x1b[2J\n\t\x7f":     `"\u001b[2J\n\t\u007f"`,
		"\xff\xc3\x28ä\u0085": `"\ufffd\ufffd(ä\u0085"`,
		"\U000e0001":          `"\udb40\udc01"`,
	} {
		got := string(AppendJSONString([]byte(" "), []byte(in)))
		require.Equal(t, " "+want, got)
		require.True(t, json.Valid([]byte(got)))
	}
}
