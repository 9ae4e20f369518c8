package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/fixture"
)

// TestColor covers colours always, on a terminal, and never.
func TestColor(t *testing.T) {
	types := fixture.Write(t)
	_, always, _ := ksnoop(t, types, "info|vfs_read|--color=always")
	require.Equal(t, "long \x1b[1mvfs_read\x1b[m(struct file *file, long count);\n", always)
	for _, line := range []string{"info|vfs_read", "info|vfs_read|--color|never"} {
		_, plain, _ := ksnoop(t, types, line)
		require.Equal(t, "long vfs_read(struct file *file, long count);\n", plain)
	}
	status, _, stderr := ksnoop(t, types, "info|vfs_read|--color=alway")
	require.Equal(t, exit.Usage, status)
	require.Equal(t, "ksnoop: --color is \"alway\": did you mean \"always\"? it must be auto, always or never\n", stderr)
}

// TestTerminal verifies that output to a terminal has colours unless the environment
// disables them, and lines no wider than the terminal.
func TestTerminal(t *testing.T) {
	types := fixture.Write(t)
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

// TestNoPager verifies that what is longer than a terminal is shown by no pager, whatever the
// environment has.
func TestNoPager(t *testing.T) {
	used := filepath.Join(t.TempDir(), "used")
	pager := filepath.Join(t.TempDir(), "pager")
	require.NoError(t, os.WriteFile(pager, []byte("#!/bin/sh\n> "+used+"\nexec cat\n"), 0o755))
	types := fixture.Write(t)
	for _, args := range [][]string{{"help", "trace"}, {"help", "spec"}, {"help", "--json"}, {"list", "--btf", types, "*"}, {"info", "--btf", types, "struct file"}, {"compile", "--btf", types, "vfs_read"}} {
		shown := atTerminal(t, 80, []string{"PAGER=" + pager, "KSNOOP_PAGER=" + pager, "MANPAGER=" + pager, "LESS=FRX", "TERM=xterm", "PATH=" + filepath.Dir(pager)}, args...)
		require.NotEmpty(t, shown, args)
		require.NoFileExists(t, used, args)
		require.NotContains(t, shown, "\x1b[?1049h", "%s: the other screen of a terminal", args)
	}
}

// atTerminal runs ksnoop on a terminal and returns what the terminal shows.
func atTerminal(t *testing.T, columns uint16, env []string, args ...string) string {
	terminal, tty := fixture.OpenTerminal(t)
	defer terminal.Close()
	require.NoError(t, unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}))
	cmd := exec.Command(testBinary(t), args...)
	cmd.Env = append([]string{asKsnoop + "=1"}, env...)
	cmd.Stdout = tty
	require.NoError(t, cmd.Start())
	tty.Close()
	shown, _ := io.ReadAll(terminal) // returns an error at the end, when nobody has the terminal open any more
	require.NoError(t, cmd.Wait())
	return strings.ReplaceAll(string(shown), "\r", "")
}

// TestLookOptions verifies that --compact is -o compact, unless another format is
// given.
func TestLookOptions(t *testing.T) {
	for _, tc := range []struct{ line, want string }{
		{"vfs_read --time day", "ksnoop: --time is \"day\": it must be mono, wall or delta\n"},
		{"vfs_read --time wal", "ksnoop: --time is \"wal\": did you mean \"wall\"? it must be mono, wall or delta\n"},
		{"vfs_read -o json --time delta", "ksnoop: --time is \"delta\": JSON always has ns of CLOCK_MONOTONIC, as mono, and can have wall beside it\n"},
		{"vfs_read --color x", "ksnoop: --color is \"x\": it must be auto, always or never\n"},
		{"vfs_read --no-headr", "ksnoop: trace has no option --no-headr: did you mean --no-header?\n"},
		{"help --josn", "ksnoop: help has no option --josn: did you mean --json?\n"},
		{"help tarce", "ksnoop: there is no command tarce: did you mean 'ksnoop help trace'?\n"},
		{"help zzzzzz", "ksnoop: there is no command zzzzzz: ksnoop help lists them, and ksnoop help spec explains the language\n"},
	} {
		status, stdout, stderr := runLine(strings.Fields(tc.line)...)
		require.Equal(t, exit.Usage, status, tc.line)
		require.Empty(t, stdout)
		require.Equal(t, tc.want, stderr, tc.line)
	}
}

// TestOutputFormat verifies that an unknown format is refused before the kernel is
// examined.
func TestOutputFormat(t *testing.T) {
	for format, want := range map[string]string{
		"jsn": "ksnoop: --output is \"jsn\": did you mean \"json\"? it must be text, compact, json or ftrace\n",
		"xml": "ksnoop: --output is \"xml\": it must be text, compact, json or ftrace\n",
		"":    "ksnoop: --output is \"\": it must be text, compact, json or ftrace\n",
	} {
		var stdout, stderr bytes.Buffer
		status := ksnoopStatus([]string{"ksnoop", "--output=" + format, "vfs_read"}, strings.NewReader(""), &stdout, &stderr)
		require.Equal(t, exit.Usage, status)
		require.Equal(t, want, stderr.String())
		require.Empty(t, stdout.String())
	}
}
