//go:build linux

package main

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRecord types commands at a shell of this machine. Their output is recorded, and
// what looks like a prompt is not taken for one.
func TestRecord(t *testing.T) {
	if _, err := os.Stat("/dev/pts/ptmx"); err != nil {
		t.Skip("needs devpts")
	}
	shell := exec.Command("sh", "-i")
	shell.Env = []string{"PS1=" + prompt, "PATH=/bin:/usr/bin"}
	r, err := typist{time.Millisecond, time.Millisecond}.record(shell, []string{"stty size", `printf 'two\n# three\n'`})
	require.NoError(t, err)
	s := newScreen(r.Width)
	for _, e := range r.Events {
		require.NoError(t, s.write(e.Text))
	}
	require.Equal(t, []string{"# stty size", "26 106", `# printf 'two\n# three\n'`, "two", "# three", "#"}, texts(s.snapshot()))

	var file bytes.Buffer
	_, err = r.WriteTo(&file)
	require.NoError(t, err)
	read, err := ReadRecording(&file)
	require.NoError(t, err)
	require.Len(t, read.Events, len(r.Events))
	for i, e := range read.Events {
		require.Equal(t, r.Events[i].Text, e.Text)
		require.WithinDuration(t, time.Time{}.Add(r.Events[i].After), time.Time{}.Add(e.After), time.Millisecond)
	}

	_, err = typist{}.record(exec.Command("sh", "-c", "printf '# '; read x"), []string{"one", "two"})
	require.EqualError(t, err, "the shell ended before it got command 2")
}
