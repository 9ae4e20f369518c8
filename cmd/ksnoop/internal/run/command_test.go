package run

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/runtime"
)

func TestCommandStatus(t *testing.T) {
	for _, tc := range []struct {
		script string
		status int
	}{
		{"exit 0", 0},
		{"exit 3", 3},
		{"kill -TERM $$", 128 + 15},
		{"kill -KILL $$", 128 + 9},
		{"read line; test \"$line\" = input && echo output && echo error >&2", 0},
	} {
		var stdout, stderr bytes.Buffer
		c, err := FindProgram([]string{"sh", "-c", tc.script}, Inherit(), &term.Streams{In: strings.NewReader("input\n"), Out: &stdout, Err: &stderr})
		require.NoError(t, err)
		require.NoError(t, c.Start())
		stopped := false
		c.Wait(func() { stopped = true })
		require.Equal(t, tc.status, c.Status, tc.script)
		require.True(t, stopped)
		<-c.Ended
		if strings.Contains(tc.script, "output") {
			require.Equal(t, "output\nerror\n", stdout.String()+stderr.String())
		}
	}
}

func TestReadyFile(t *testing.T) {
	dir := t.TempDir()
	r := &Ready{file: filepath.Join(dir, "ready")}
	require.NoError(t, r.Tell(io.Discard))
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1)
	text, err := os.ReadFile(r.file)
	require.NoError(t, err)
	require.Regexp(t, `^\d+\n$`, string(text))
	r.Close()
	require.NoFileExists(t, r.file)
	r.Close()
	(&Ready{file: dir}).Close() // nothing was announced, so nothing is removed
	require.DirExists(t, dir)
}

// TestStartUnless verifies that a command does not start after a signal, and gets one that
// comes while it starts.
func TestStartUnless(t *testing.T) {
	find := func() *Command {
		c, err := FindProgram([]string{"sleep", "60"}, Inherit(), &term.Streams{})
		require.NoError(t, err)
		return c
	}
	c := find()
	require.ErrorIs(t, c.StartUnless(func() bool { return true }), runtime.ErrStopped)
	require.Nil(t, c.Cmd.Process)
	c = find()
	asked := 0
	require.NoError(t, c.StartUnless(func() bool { asked++; return asked > 1 }))
	c.Wait(func() {})
	require.Equal(t, 128+15, c.Status)
}
