package console

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRead(t *testing.T) {
	steps, err := Read("# A page\n```sh file=a.sh\necho a\n```\n\n```console\n$ sh a.sh \\\n  twice\na\n# tracer: nop\n# ksnoop f\n```\n```console as=none with=kernels\n$ y\n```\n```\n$ not this\n```\n")
	require.NoError(t, err)
	require.Equal(t, []Step{
		{Line: 2, File: "a.sh", Content: "echo a\n"},
		{Line: 7, Command: "sh a.sh \\\n  twice", Output: "a\n# tracer: nop\n"},
		{Line: 11, Command: "ksnoop f"},
		{Line: 14, Command: "y", As: "none", With: "kernels"},
	}, steps)
	for page, want := range map[string]string{
		"```console\nhello\n```\n":      "line 2: output before the first command",
		"text\n```console\n$ x\nno end": "line 2: the fence has no end",
	} {
		_, err := Read(page)
		require.EqualError(t, err, want)
	}
}

func TestMatch(t *testing.T) {
	for _, tc := range []struct {
		page, printed string
		want          bool
	}{
		{"", "", true},
		{"", "x\n", false},
		{"x\n", "", false},
		{"pid 12  at 0xff12\n", "pid 3 at 0xa\n", true},
		{"pid twelve\n", "pid 12\n", false},
		{"a\n...\nb\n", "a\nx\ny\nb\n", true},
		{"a\n...\nb\n", "a\nb\n", true},
		{"a\n...\nb\n", "a\nx\n", false},
		{"a ...\nb\n", "a and more\nb\n", true},
		{"a.c\n", "abc\n", false},
		{"a\n", "a\nb\n", false},
		{"in 3.1ms: 5\n", "in 12us: 7\n", true},
		{"in 3.1ms: 5\n", "in 12: 7\n", true},
		{"/* 3.311682ms */\n", "/* 812.842µs */\n", true},
		{"[1us, 2us) 5\n", "[512ns, 1us) 7\n", true},
		{"a\n [1, 2) 3 |@@@ |\n [2, 4) 4 |@@@@|\nb\n", "a\n [1us, 2us) 1 |@@@@|\nb\n", true},
		{"a\n [1, 2) 3 |@@@ |\nb\n", "a\nb\n", false},
		{"1 0 swapper/0 -> f\n", "2 711 ksnoop -> f\n", true},
		{"1 0 swapper/0 -> f\n", "2 711 ksnoop -> g\n", false},
		{"1 7 nc -> f\n", "2 0 swapper/0 -> f\n", false},
	} {
		require.Equal(t, tc.want, Match(tc.page, tc.printed), "%q %q", tc.page, tc.printed)
	}
}

func TestHolds(t *testing.T) {
	require.True(t, Step{Command: "echo 5", Output: "5\n"}.Holds("6\n"))
	require.True(t, Step{Command: "echo $?", Output: "1\n"}.Holds("1\n"))
	require.False(t, Step{Command: "echo $?", Output: "1\n"}.Holds("0\n"))
}
