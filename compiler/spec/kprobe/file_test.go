package kprobe

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseFile(t *testing.T) {
	for _, test := range []struct{ about, text, want string }{
		{"nothing", "", ""},
		{"comments and blank lines", "\n  \t\n# p vfs_read\n   # it's\r\n", ""},
		{"both languages", "p:a vfs_read $arg1 # one\nvfs_write(count)# two\ntp:sched_switch\nf vfs_open\r\n",
			"p:a vfs_read $arg1\nvfs_write(count)\ntp:sched_switch\nf vfs_open"},
		{"no end of the last line", "vfs_read", "vfs_read"},
		{"a # in strings", "p:a f \\\"#\" if comm == '#' # x\nf(a == \"\\\"#\", b == '#') # y",
			"p:a f \\\"#\" if comm == \"#\"\nf(a == \"\\\"#\", b == '#')"},
		{"deleted", "p:a f\np:b f\n-:a", "p:b f"},
		{"deleted in a group", "p:g/a f\np:a f\n-:g/a", "p:a f"},
		{"deleted in all groups", "p:g/a f\np:a f\nf:a f\n -:a # all", ""},
		{"a group deleted", "p:g/a f\np:g/b f\np:a f\n-:g/", "p:a f"},
		{"deleted and made again", "p:a f\n-:a\np:a g", "p:a g"},
		{"by the kernel's name", "p f\nr f\nf f\n-:p_f_0\n-:f__entry", "r f"},
		{"replaced", "p:a f\np:b f\nr:a g $retval", "p:b f\nr:a g $retval"},
		{"replaced by the kernel's name", "p f $arg1\np:kprobes/p_f_0 f %di", "p:kprobes/p_f_0 f %di"},
		{"not replaced in another group", "p:a f\np:g/a f\nf:a f", "p:a f\np:g/a f\nf:a f"},
		{"specs have no events", "f\nf\np f", "f\nf\np f"},
	} {
		traces, err := ParseFile("x", test.text)
		require.NoError(t, err, test.about)
		var lines []string
		for _, trace := range traces {
			lines = append(lines, trace.String())
			require.NotRegexp(t, `\s$`, trace.Text, test.about)
		}
		require.Equal(t, test.want, strings.Join(lines, "\n"), test.about)
	}
}

func TestParseFileErrors(t *testing.T) {
	traces, err := ParseFile("probes.txt", `# the first is right
p:read vfs_read $arg1
  p:x vfs_read $ar1   # a comment
vfs_read(count = 5)
-:raed
-:grp/none x
-:
-:read more
`)
	require.Len(t, traces, 1)
	require.Equal(t, "probes.txt", traces[0].From.File)
	require.Equal(t, 2, traces[0].From.Line)
	require.EqualError(t, err, `
probes.txt:3:16: '$ar1' is not known
    p:x vfs_read $ar1
                 ^^^^
  did you mean '$arg1'?
probes.txt:4:16: '=' is not a comparison
  vfs_read(count = 5)
                 ^
  did you mean '=='?
probes.txt:5:3: no earlier line has the event 'raed'
  -:raed
    ^^^^
  did you mean 'read'?
probes.txt:6:12: 'x' after the event
  -:grp/none x
             ^
probes.txt:7:3: the name of an event is missing
  -:
    ^
probes.txt:8:8: 'more' after the event
  -:read more
         ^^^^`[1:])

	_, err = ParseFile("f", "-:g/a")
	require.EqualError(t, err, "f:1:3: no earlier line has the event 'g/a'\n  -:g/a\n    ^^^")
	_, err = ParseFile("f", "vfs_read\n-:g/\u00e9")
	require.ErrorContains(t, err, "f:2:5: U+00E9 at position 5: a spec is plain ASCII text\n")
	_, err = ParseFile("f", "vfs_read(count, # the length\n  return)\nvfs_write if \\\n")
	require.EqualError(t, err, `
f:1:16: ')' is missing
  vfs_read(count,
                 ^
  close the list of values with ')'
  a spec ends where its line ends
f:2:3: the function is missing
    return)
    ^^^^^^
  'return' belongs in the parentheses after a function name: vfs_read(return)
f:3:14: '\' is not part of the spec language
  vfs_write if \
               ^
  a spec ends where its line ends`[1:])
}
