package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What cannot be run is said before the kernel is asked for anything.
func TestCannotRun(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	require.NoError(t, os.WriteFile(plain, []byte("no program"), 0o644))
	for _, tc := range []struct {
		command string
		status  int
		want    string
	}{
		{"nosuch-program", exitNotFound, "ksnoop: run nosuch-program: there is no such program in $PATH\n"},
		{dir + "/none", exitNotFound, "ksnoop: run " + dir + "/none: no such file or directory\n"},
		{plain, exitNotExecutable, "ksnoop: run " + plain + ": permission denied\n"},
		{dir, exitNotExecutable, "ksnoop: run " + dir + ": is a directory\n"},
	} {
		var stdout, stderr bytes.Buffer
		status := run([]string{"ksnoop", "vfs_read", "--", tc.command}, strings.NewReader(""), &stdout, &stderr)
		require.Equal(t, tc.want, stderr.String())
		require.Equal(t, tc.status, status)
		require.Empty(t, stdout.String())
	}
}

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
		line := invoke(t, "vfs_read", "--", "sh", "-c", tc.script)
		line.own, line.stdin, line.stdout, line.stderr = keepInherited(), strings.NewReader("input\n"), &stdout, &stderr
		c, err := findCommand(line)
		require.NoError(t, err)
		require.NoError(t, c.start())
		stopped := false
		c.wait(func() { stopped = true })
		require.Equal(t, tc.status, c.status, tc.script)
		require.True(t, stopped)
		<-c.ended
		if strings.Contains(tc.script, "output") {
			require.Equal(t, "output\nerror\n", stdout.String()+stderr.String())
		}
	}
}

func TestReadyFile(t *testing.T) {
	dir := t.TempDir()
	r := &ready{file: filepath.Join(dir, "ready")}
	require.NoError(t, r.tell())
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1)
	text, err := os.ReadFile(r.file)
	require.NoError(t, err)
	require.Regexp(t, `^\d+\n$`, string(text))
	r.close()
	require.NoFileExists(t, r.file)
	r.close()
	(&ready{file: dir}).close() // it was not told, so nothing is removed
	require.DirExists(t, dir)
}
