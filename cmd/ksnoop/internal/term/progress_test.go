package term

import (
	"bytes"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/fixture"
	"github.com/ksnoop/ksnoop/runtime"
)

func TestProgress(t *testing.T) {
	const clear = "\r\x1b[K"
	type step struct {
		at          time.Duration
		done, total int
	}
	for _, tc := range []struct {
		name  string
		steps []step
		want  string
	}{
		{"quick", []step{{0, 0, 500}, {999 * time.Millisecond, 499, 500}}, ""},
		{"nothing to do", []step{{2 * time.Second, 0, 0}}, ""},
		{"slow", []step{{0, 0, 500}, {time.Second, 120, 500}}, clear + "ksnoop: attaching 120 of 500 functions" + clear},
		{"two places for each function", []step{{time.Second, 241, 1000}}, clear + "ksnoop: attaching 120 of 500 functions" + clear},
		{"no more often than can be read", []step{{time.Second, 1, 500}, {1099 * time.Millisecond, 2, 500}, {1100 * time.Millisecond, 3, 500}},
			clear + "ksnoop: attaching 1 of 500 functions" + clear + "ksnoop: attaching 3 of 500 functions" + clear},
	} {
		var out bytes.Buffer
		start := time.Unix(1, 0)
		p := newProgress(&out, "attaching", 500, start)
		for _, s := range tc.steps {
			p.show(s.done, s.total, start.Add(s.at))
		}
		p.clear()
		p.clear()
		require.Equal(t, tc.want, out.String(), tc.name)
	}
}

// TestProgressNarrow verifies that nothing is left of the line on a terminal that has no
// room for it.
func TestProgressNarrow(t *testing.T) {
	emulator, tty := fixture.OpenTerminal(t)
	shown := fixture.NewEmulator(20, 6)
	fixture.Resize(t, tty, 20, 6)
	p := newProgress(tty, "attaching", 500, time.Unix(0, 0))
	for i := range 3 {
		p.show(i, 500, time.Unix(int64(i+1), 0))
	}
	p.clear()
	shown.Show(t, fixture.Written(t, emulator, tty))
	require.Empty(t, shown.Text(t))
}

func TestIsTerminal(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	defer terminal.Close()
	require.True(t, IsTerminal(terminal))
	file, err := os.Create(t.TempDir() + "/file")
	require.NoError(t, err)
	defer file.Close()
	require.False(t, IsTerminal(file))
	require.False(t, IsTerminal(new(bytes.Buffer)))
	t.Setenv("TERM", "dumb")
	session := new(runtime.Session)
	require.NoError(t, WithProgress(terminal, session, "attaching", 1, func() error {
		require.Nil(t, session.Progress, "such a terminal shows control sequences as text")
		return nil
	}))
	t.Setenv("TERM", "xterm")
	for _, w := range []io.Writer{terminal, file} {
		session := new(runtime.Session)
		require.Equal(t, io.EOF, WithProgress(w, session, "attaching", 1, func() error {
			require.Equal(t, w == terminal, session.Progress != nil)
			return io.EOF
		}))
		require.Nil(t, session.Progress)
	}
}
