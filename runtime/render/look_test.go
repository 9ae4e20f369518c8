package render

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// TestWidth verifies that lines are wrapped at blanks and tables folded, only on a
// terminal.
func TestWidth(t *testing.T) {
	require.Equal(t, "one two three four", Wrap("one two three four", 0, 2))
	require.Equal(t, "alpha beta gamma delta\n  epsilon zeta", Wrap("alpha beta gamma delta epsilon zeta", 23, 2))
	for width := range 60 {
		text := Wrap("-                 void some_function(struct one *a, struct two *b); // a reason", width, 4)
		for line := range strings.Lines(text) {
			require.True(t, width < 25 || len(strings.TrimSuffix(line, "\n")) <= width, "%d: %s", width, text)
		}
		require.Equal(t, "- void some_function(struct one *a, struct two *b); // a reason", strings.Join(strings.Fields(text), " "))
	}
	numbers := NewTable("NAME", "A", "BB", "CCC")
	numbers.Row("one", "1", "22", "333")
	require.Equal(t, "  NAME  A  BB  CCC\n  one   1  22  333\n", numbers.Fit(18))
	require.Equal(t, "  NAME  A  BB\n  one   1  22\n\n  NAME  CCC\n  one   333\n", numbers.Fit(17))
	require.Equal(t, "  NAME  A\n  one   1\n\n  NAME  BB\n  one   22\n\n  NAME  CCC\n  one   333\n", numbers.Fit(3))
	require.Equal(t, "a /sys/kernel/security/lockdown\n  is there", Wrap("a /sys/kernel/security/lockdown is there", 24, 2))
	require.Equal(t, "a_word_that_is_too_long\nb", Wrap("a_word_that_is_too_long b", 10, 0))
	kernels := NewTable("SPEC", "5.10", "6.1")
	kernels.Row("vfs_read(count)", "no argument", "ok")
	kernels.Row("vfs_open", "ok", "ok")
	require.Equal(t, kernels.String(), kernels.Fold(0))
	require.Equal(t, "  SPEC             5.10\n  vfs_read(count)  no argument\n  vfs_open         ok\n\n  SPEC             6.1\n  vfs_read(count)  ok\n  vfs_open         ok\n",
		kernels.Fold(32))
	notes := NewTable("NAME", "NOTE")
	notes.Row("one", "a note that is longer than there is room for")
	require.Equal(t, "  NAME  NOTE\n  one   a note that is longer\n        than there is room for\n", notes.Fit(33))
	require.Equal(t, "  NAME\n    NOTE\n  one\n    a note that is longer\n    than there is room for\n", notes.Fit(26))
	notes.Row("", "")
	for width := 20; width < 80; width++ {
		for line := range strings.Lines(notes.Fit(width)) {
			require.LessOrEqual(t, len(line), width+1, "%d: %s", width, line)
		}
	}
}

// TestTimes covers the time of an event by each clock, and in the style of
// kprobe_events.
func TestTimes(t *testing.T) {
	wall := func() time.Duration {
		return time.Duration(time.Date(2026, 11, 21, 23, 59, 58, 999_000_000, time.Local).UnixNano())
	}
	times := []time.Duration{123456789, 1_500_000_000, 1_499_999_999}
	for _, tc := range []struct {
		style Clock
		want  string
	}{
		{Mono, "       123456789 |       1500000000 |       1499999999 |"},
		{Wall, " 23:59:59.122456 |  00:00:00.499000 |  00:00:00.498999 |"},
		{Delta, "     0.000000000 |      1.376543211 |     -0.000000001 |"},
	} {
		p := &page{look: Look{Time: tc.style, wall: wall}}
		for i, at := range times {
			if i > 0 {
				p.blanks(1)
			}
			p.time(at, 16)
			p.text = append(p.text, '|')
		}
		require.Equal(t, tc.want, string(p.text), tc.style)
	}
	for style, want := range map[Clock]string{Mono: "     1.500000", Wall: "00:00:00.499000", Delta: "     0.000000"} {
		p := &page{look: Look{Time: style, wall: wall}}
		p.seconds(1_500_000_000)
		require.Equal(t, want, string(p.text))
	}
}

// TestCompactLook verifies that compact lines are wrapped to a terminal's width, and
// that headings can be left out.
func TestCompactLook(t *testing.T) {
	p := newCompact(Options{Values: dumpDefaults, Look: Look{NoHeader: true, Width: 50, Time: Delta}})
	p.begin(&compiler.Unit{})
	for range 2 {
		require.NoError(t, p.Event(newEvent(compiler.EntryEvent, runtime.Value{Value: plain("number", intType), Data: []byte{1, 0, 0, 0}})))
	}
	line := "     0.000000000    2       77 cat\n            -> f(number=1)\n"
	require.Equal(t, strings.Repeat(line, 2), string(p.text))
}
