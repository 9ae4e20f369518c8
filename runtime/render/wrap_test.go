package render

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWrapValues verifies that lines are broken between values and members, but not in
// strings, comments, types or behind an arrow.
func TestWrapValues(t *testing.T) {
	for _, tc := range []struct {
		width      int
		line, want string
	}{
		{0, "-> f(first=1, second=2)", "-> f(first=1, second=2)"},
		{19, "-> f(first=1, second=2)", "-> f(first=1, second=2)"},
		{23, "-> f(first=1, second=2)", "-> f(first=1, second=2)"},
		{20, "-> f(first=1, second=2)", "-> f(first=1,\n     second=2)"},
		{20, "<> f(first=1, x=2) = -1234", "<> f(first=1, x=2)\n     = -1234"},
		{24, "-> f(p=*(0x1){.a = (struct one)2,.bb = (int)3})", "-> f(p=*(0x1){\n      .a = (struct one)2,\n      .bb = (int)3})"},
		{24, `-> f(name="a, b and \" c, d", x=1)`, "-> f(name=\"a, b and \\\" c, d\",\n      x=1)"},
		{24, "-> f(c='\"', d=12, e=123, g='\\'', h=1)", "-> f(c='\"', d=12, e=123,\n      g='\\'', h=1)"},
		{24, "-> f(x=1, y=/* it is NULL, or so */, z=2)", "-> f(x=1,\n      y=/* it is NULL, or so */,\n      z=2)"},
		{20, "vfs_read $comm=\"sshd\" count()=12", "vfs_read\n     $comm=\"sshd\"\n     count()=12"},
		{20, "héé(a=\"héllo\", bb=1)", "héé(a=\"héllo\", bb=1)"},
		{20, "-> f(a=\"字字字字\", b=1)", "-> f(a=\"字字字字\",\n     b=1)"},
		{24, "-> f(open=\"without an end, b=2", "-> f(open=\"without an end, b=2"},
	} {
		require.Equal(t, "before\n"+tc.want, string(wrapValues([]byte("before\n"+tc.line), 7, tc.width)), "%d: %s", tc.width, tc.line)
	}
}

// FuzzWrapValues verifies that wrapping changes nothing but white space, and that a line
// is too long only if it has one piece, or others within the indentation.
func FuzzWrapValues(f *testing.F) {
	f.Add(`-> f(a=1, b=*(0x12){.c = (int)3,.d = "x, y",}) = -1`, uint(30))
	f.Add(`vfs_read $comm="(sd-pam)" count()=1 hist()=[1, 2] 3 |@@|`, uint(24))
	f.Fuzz(func(t *testing.T, line string, width uint) {
		line = strings.Join(strings.Fields(line), " ")
		width = 20 + width%200
		got := string(wrapValues([]byte(line), 0, int(width)))
		bare := func(s string) string { return strings.NewReplacer(" ", "", "\n", "").Replace(s) }
		require.Equal(t, bare(line), bare(got))
		for part := range strings.Lines(got) {
			part = strings.TrimRight(part, "\n ")
			if columnsOf(part) > int(width) {
				last := strings.TrimLeft(part, " ")
				begin := columnsOf(part) - columnsOf(last)
				for end := pieceEnd([]byte(last)); end < len(last); end = pieceEnd([]byte(last)) {
					begin += columnsOf(last[:end])
					last = last[end:]
				}
				require.LessOrEqual(t, begin, int(width)/4, "%q of %q", part, got)
			}
		}
	})
}
