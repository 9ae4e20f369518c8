package main

import (
	"bytes"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// marked is text whose styles are letters in angle brackets.
func marked(text string) string {
	painted := string(appendPainted(nil, []byte(text)))
	return strings.NewReplacer(string(functionStyle), "<F:", string(nameStyle), "<N:", string(typeStyle), "<T:", string(faultStyle), "<X:", endOfStyle, ">").Replace(painted)
}

// What has a style: functions, names, types and faults, and nothing in strings.
func TestPaint(t *testing.T) {
	for text, want := range map[string]string{
		"       123    2       77 vfs_read(\n":                   "       123    2       77 <F:vfs_read>(\n",
		"           tp:tick(\n":                                  "           tp:<F:tick>(\n",
		"         file->f_path.dentry = *(0xffff)\n":             "         <N:file->f_path.dentry> = *(0xffff)\n",
		"          (struct file){\n  .f_flags = (int)2,\n":       "          <T:(struct file)>{\n  .<N:f_flags> = <T:(int)>2,\n",
		"          (char *)\"a = (int)2 /* x */ \\\" f(\",\n":    "          <T:(char *)>\"a = (int)2 /* x */ \\\" f(\",\n",
		"  /* Cannot show 'p' as 'int *': NULL pointer */\n":     "  <X:/* Cannot show 'p' as 'int *': NULL pointer */>\n",
		"  (u64)1500 /* 1.5\u00b5s */\n":                         "  <T:(u64)>1500 /* 1.5\u00b5s */\n",
		"-> f(p=*(0x1){.a = (int)1,}, s=\"x\") = -1\n":           "-> <F:f>(<N:p>=*(0x1){.<N:a> = <T:(int)>1,}, <N:s>=\"x\") = -1\n",
		"<- f() = /* 0x12 is a user-space address */\n":          "<- <F:f>() = <X:/* 0x12 is a user-space address */>\n",
		"fentry  int f(char *s);  // no hook\n":                  "fentry  int <F:f>(char *s);  <X:// no hook>\n",
		"it's (x a \"open\n(int)1 'c' \\\"\n":                    "it's (x a \"open\n<T:(int)>1 'c' \\\"\n",
		"\x1b[31m(int)1 \x9b = \u202e\n/* \x1b[2J */\n(\n\"\\\n": "?[<F:31m>(int)1 ? = ?\n<X:/* ?[2J */>\n(\n\"\\\n",
	} {
		require.Equal(t, want, marked(text), text)
	}
}

// sgr is what colours are made of.
var sgr = regexp.MustCompile(`\x1b\[(1|31|32|36)?m`)

// FuzzPaint: without the colours, a painted text is the plain one, however it is
// cut; and nothing else that a terminal obeys is in it.
func FuzzPaint(f *testing.F) {
	f.Add([]byte("\x1b[31mf(x) = (int)1 /* \x1b[m */\n.a = \"\x1b[2J\xff"), uint(7))
	f.Add([]byte("a\x1b=/*\n//\\\"(char *)\xe4\xb8\n"), uint(9))
	f.Fuzz(func(t *testing.T, text []byte, at uint) {
		text = append(text, '\n') // only whole lines are shown
		cut := int(at % uint(len(text)))
		var plain, painted bytes.Buffer
		_, _ = (&plainWriter{w: &plain}).Write(text) // no error from a buffer
		w := &plainWriter{w: &painted, color: true}
		_, _ = w.Write(text[:cut])
		_, _ = w.Write(text[cut:])
		require.Equal(t, plain.String(), sgr.ReplaceAllString(painted.String(), ""))
		require.Regexp(t, safe, sgr.ReplaceAllString(painted.String(), ""))
	})
}

// Colours are there when they are asked for, on a terminal, or never.
func TestColor(t *testing.T) {
	types := writeKernel(t)
	_, always, _ := ksnoop(t, types, "info|vfs_read|--color=always")
	require.Equal(t, "long \x1b[1mvfs_read\x1b[m(struct file *file, long count);\n", always)
	for _, line := range []string{"info|vfs_read", "info|vfs_read|--color|never"} {
		_, plain, _ := ksnoop(t, types, line)
		require.Equal(t, "long vfs_read(struct file *file, long count);\n", plain)
	}
	status, _, stderr := ksnoop(t, types, "info|vfs_read|--color=alway")
	require.Equal(t, exitUsage, status)
	require.Equal(t, "ksnoop: --color is \"alway\": did you mean \"always\"? it must be auto, always or never\n", stderr)
}

// On a terminal there are colours, unless the environment is against them, and
// lines are no wider than it is.
func TestTerminal(t *testing.T) {
	types := writeKernel(t)
	for _, tc := range []struct{ env, want string }{
		{"TERM=xterm", "long \x1b[1mvfs_read\x1b[m(struct file *file, long\n    count);\n"},
		{"TERM=dumb", "long vfs_read(struct file *file, long\n    count);\n"},
		{"NO_COLOR=1", "long vfs_read(struct file *file, long\n    count);\n"},
	} {
		require.Equal(t, tc.want, atTerminal(t, 40, []string{"TERM=xterm", tc.env}, "info", "--btf", types, "vfs_read"), tc.env)
	}
	help := atTerminal(t, 60, nil, "help", "trace")
	require.Contains(t, help, "--no-header")
	for line := range strings.Lines(help) {
		require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 60, line)
	}
}

// atTerminal runs ksnoop at a terminal and returns what that shows.
func atTerminal(t *testing.T, columns uint16, env []string, args ...string) string {
	terminal, tty := openTerminal(t)
	defer terminal.Close()
	require.NoError(t, unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}))
	cmd := exec.Command(testBinary(t), args...)
	cmd.Env = append([]string{asKsnoop + "=1"}, env...)
	cmd.Stdout = tty
	require.NoError(t, cmd.Start())
	tty.Close()
	shown, _ := io.ReadAll(terminal) // the end is an error: nobody has it open any more
	require.NoError(t, cmd.Wait())
	return strings.ReplaceAll(string(shown), "\r", "")
}

// Lines are wrapped at blanks and tables are folded, unless they go to no terminal.
func TestWidth(t *testing.T) {
	require.Equal(t, "one two three four", wrap("one two three four", 0, 2))
	require.Equal(t, "alpha beta gamma delta\n  epsilon zeta", wrap("alpha beta gamma delta epsilon zeta", 23, 2))
	for width := range 60 {
		text := wrap("-                 void some_function(struct one *a, struct two *b); // a reason", width, 4)
		for line := range strings.Lines(text) {
			require.True(t, width < 25 || len(strings.TrimSuffix(line, "\n")) <= width, "%d: %s", width, text)
		}
		require.Equal(t, "- void some_function(struct one *a, struct two *b); // a reason", strings.Join(strings.Fields(text), " "))
	}
	numbers := newTable("NAME", "A", "BB", "CCC")
	numbers.row("one", "1", "22", "333")
	require.Equal(t, "  NAME  A  BB  CCC\n  one   1  22  333\n", numbers.fit(18))
	require.Equal(t, "  NAME  A  BB\n  one   1  22\n\n  NAME  CCC\n  one   333\n", numbers.fit(17))
	require.Equal(t, "  NAME  A\n  one   1\n\n  NAME  BB\n  one   22\n\n  NAME  CCC\n  one   333\n", numbers.fit(3))
	notes := newTable("NAME", "NOTE")
	notes.row("one", "a note that is longer than there is room for")
	require.Equal(t, "  NAME  NOTE\n  one   a note that is longer\n        than there is room for\n", notes.fit(33))
	require.Equal(t, "xhéllo...", string(cutTo([]byte("xhéllo wörld"), 1, 8)))
	require.Equal(t, "xhéllo", string(cutTo([]byte("xhéllo"), 1, 5)))
}

// The time of an event, by each clock, and in the style of kprobe_events.
func TestTimes(t *testing.T) {
	wall := func() time.Duration {
		return time.Duration(time.Date(2026, 11, 21, 23, 59, 58, 999_000_000, time.Local).UnixNano())
	}
	times := []time.Duration{123456789, 1_500_000_000, 1_499_999_999}
	for _, tc := range []struct {
		style timeStyle
		want  string
	}{
		{monoTime, "       123456789 |       1500000000 |       1499999999 |"},
		{wallTime, " 23:59:59.122456 |  00:00:00.499000 |  00:00:00.498999 |"},
		{deltaTime, "     0.000000000 |      1.376543211 |     -0.000000001 |"},
	} {
		p := &page{look: look{time: tc.style, wall: wall}}
		for i, at := range times {
			if i > 0 {
				p.blanks(1)
			}
			p.time(at, 16)
			p.text = append(p.text, '|')
		}
		require.Equal(t, tc.want, string(p.text), tc.style)
	}
	for style, want := range map[timeStyle]string{monoTime: "     1.500000", wallTime: "00:00:00.499000", deltaTime: "     0.000000"} {
		p := &page{look: look{time: style, wall: wall}}
		p.seconds(1_500_000_000)
		require.Equal(t, want, string(p.text))
	}
}

// The offset between the clocks makes of a time of CLOCK_MONOTONIC one of the day.
func TestWallOffset(t *testing.T) {
	var mono unix.Timespec
	before := time.Now()
	require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono))
	after := time.Now()
	day := time.Unix(0, mono.Nano()+int64(wallOffset()))
	require.WithinRange(t, day, before.Add(-time.Millisecond), after.Add(time.Millisecond))
}

// Compact lines are cut to a terminal, and headings can be left out.
func TestCompactLook(t *testing.T) {
	p := newCompact(dumpDefaults, nil)
	p.use(look{noHeader: true, width: 50, time: deltaTime})
	p.begin()
	for range 2 {
		require.NoError(t, p.event(newEvent(compiler.EntryEvent, runtime.Value{Value: plain("number", intType), Data: []byte{1, 0, 0, 0}})))
	}
	line := "     0.000000000    2       77 cat              -> f(number=1)"
	require.Equal(t, strings.Repeat(line[:47]+"...\n", 2), string(p.text))
}

// --compact is -o compact, unless another format is given.
func TestLookOptions(t *testing.T) {
	for _, tc := range []struct{ line, want string }{
		{"vfs_read --time day", "ksnoop: --time is \"day\": it must be mono, wall or delta\n"},
		{"vfs_read --time wal", "ksnoop: --time is \"wal\": did you mean \"wall\"? it must be mono, wall or delta\n"},
		{"vfs_read -o json --time wall", "ksnoop: --time is \"wall\": it is of text, and JSON always has ns of CLOCK_MONOTONIC, as mono\n"},
		{"vfs_read --color x", "ksnoop: --color is \"x\": it must be auto, always or never\n"},
		{"vfs_read --no-headr", "ksnoop: trace has no option --no-headr: did you mean --no-header?\n"},
		{"help tarce", "ksnoop: there is no command tarce: did you mean 'ksnoop help trace'?\n"},
		{"help zzzzzz", "ksnoop: there is no command zzzzzz: ksnoop help lists them, and ksnoop help spec explains the language\n"},
	} {
		status, stdout, stderr := runLine(strings.Fields(tc.line)...)
		require.Equal(t, exitUsage, status, tc.line)
		require.Empty(t, stdout)
		require.Equal(t, tc.want, stderr, tc.line)
	}
}
