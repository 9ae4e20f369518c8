package term

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/fixture"
)

// TestScreen verifies that only the last text is seen on a terminal, below what was there
// before, and that the terminal is as it was at the end.
func TestScreen(t *testing.T) {
	emulator, tty := fixture.OpenTerminal(t)
	shown := fixture.NewEmulator(30, 6)
	fixture.Resize(t, tty, 30, 6)
	modes, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	require.NoError(t, err)
	fmt.Fprintln(tty, "$ ksnoop")
	s := NewScreen(NewPlain(tty), "xterm")
	require.Equal(t, 30, s.Width())
	for _, tc := range []struct{ text, seen, scrolled string }{
		{"a\nb\x1b[2J\n\n", "$ ksnoop\na\nb?[2J\n", ""},
		{"c\n", "$ ksnoop\nc\n", ""},
		{"1\n2\n3\n4\n5\n6\n7\n", "1\n2\n3\n4\n5\n", "$ ksnoop"}, // the cursor is on the last line
		{"d\n" + strings.Repeat("x", 40) + "\n", "d\n" + strings.Repeat("x", 30) + "\n", "$ ksnoop"},
		{"\n", "\n", "$ ksnoop"},
		{"e\nf", "e\nf\n", "$ ksnoop"},
	} {
		require.NoError(t, s.Draw([]byte(tc.text)))
		shown.Show(t, fixture.Written(t, emulator, tty))
		require.Equal(t, tc.seen, shown.Text(t))
		require.Equal(t, tc.scrolled, strings.Join(shown.Scrolled, "\n"))
	}
	fmt.Fprint(tty, "^C") // as the terminal does
	require.NoError(t, s.End([]byte("1\n2\n3\n4\n\n6\n7\n\n")))
	fmt.Fprintln(tty, "$")
	shown.Show(t, fixture.Written(t, emulator, tty))
	require.Equal(t, "4\n\n6\n7\n$\n", shown.Text(t), "all of the last text is there")
	require.Equal(t, []string{"$ ksnoop", "1", "2", "3"}, shown.Scrolled)
	after, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	require.NoError(t, err)
	require.Equal(t, modes, after)
}

// TestScreenResize verifies that text is as wide as the terminal is now, and that nothing
// of the text before is left, wherever the terminal has moved it.
func TestScreenResize(t *testing.T) {
	emulator, tty := fixture.OpenTerminal(t)
	shown := fixture.NewEmulator(30, 10)
	fixture.Resize(t, tty, 30, 10)
	s := NewScreen(NewPlain(tty), "xterm")
	wide := strings.Repeat("abcdefghij", 3) + "\n"
	for _, size := range []struct{ cols, rows int }{{30, 10}, {20, 10}, {40, 5}, {40, 3}, {30, 10}} {
		shown.Resize(size.cols, size.rows)
		fixture.Resize(t, tty, size.cols, size.rows)
		require.Equal(t, size.cols, s.Width())
		require.NoError(t, s.Draw([]byte(wide+wide+wide)))
		shown.Show(t, fixture.Written(t, emulator, tty))
		want := strings.Repeat(wide[:min(size.cols, 30)]+"\n", min(3, size.rows-1))
		require.Equal(t, strings.ReplaceAll(want, "\n\n", "\n"), shown.Text(t), size)
	}
}

// TestNoScreen verifies where text is not redrawn.
func TestNoScreen(t *testing.T) {
	_, tty := fixture.OpenTerminal(t)
	require.NotNil(t, NewScreen(NewPlain(tty), "ansi"))
	require.Nil(t, NewScreen(NewPlain(tty), "dumb"))
	require.Nil(t, NewScreen(NewPlain(new(bytes.Buffer)), "ansi"))
}

func TestCutLine(t *testing.T) {
	require.Equal(t, "äöü", string(cutLine([]byte("äöüß"), 3)))
	require.Equal(t, "日", string(cutLine([]byte("日本"), 3)), "each takes two columns")
	require.Equal(t, "ab", string(cutLine([]byte("ab"), 3)))
	require.Equal(t, strings.Repeat("x", 9), string(cutLine([]byte(strings.Repeat("x", 9)), 0)))
}
