package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Options stand anywhere, as with getopt; the command is trace by default.
func TestParseArgs(t *testing.T) {
	for _, tc := range []struct{ line, want string }{
		{"vfs_read", "trace -- vfs_read"},
		{"trace vfs_read", "trace -- vfs_read"},
		{"info vfs_read tcp_sendmsg", "info -- vfs_read tcp_sendmsg"},
		{"-p 12 vfs_read", "trace -p 12 -- vfs_read"},
		{"vfs_read -p 12", "trace -p 12 -- vfs_read"},
		{"vfs_read -p12 -d", "trace -p 12 -d -- vfs_read"},
		{"-dp 12 vfs_read", "trace -d -p 12 -- vfs_read"},
		{"-dvp12 vfs_read", "trace -d -v -p 12 -- vfs_read"},
		{"--pid=12 vfs_read --debug", "trace --pid=12 --debug -- vfs_read"},
		{"--pid 12 vfs_read", "trace --pid 12 -- vfs_read"},
		{"--pid=-1 vfs_read", "trace --pid=-1 -- vfs_read"},
		{"-p -1 vfs_read", "trace -p -1 -- vfs_read"},
		{"-d info vfs_read -v", "info -d -v -- vfs_read"},
		{"trace trace", "trace -- trace"},
		{"t", "trace -- t"},
		{"trace -- -x", "trace -- -x"},
		{"-s vfs_read vfs_open", "trace -s -- vfs_read vfs_open"},
		{"vfs_read --attach kprobe --stack", "trace --attach kprobe --stack -- vfs_read"},
		{"compile --btf x vfs_read --kernel-features=6.12", "compile --btf x --kernel-features=6.12 -- vfs_read"},
		{"list vfs_*", "list -- vfs_*"},
		{"-h", "--help"},
		{"help", "--help"},
		{"help info", "info --help"},
		{"info -h", "info --help"},
		{"vfs_read --help", "--help"},
		{"-V", "--version"},
		{"vfs_read --version", "--version"},
	} {
		app := newApp(io.Discard, io.Discard)
		got, err := parseArgs(app, strings.Fields(tc.line))
		require.NoError(t, err, tc.line)
		require.Equal(t, tc.want, strings.Join(got, " "), tc.line)
	}
}

// What is wrong on the command line is said before anything is asked of the
// kernel, with status 2 and nothing on stdout.
func TestUsageErrors(t *testing.T) {
	for _, tc := range []struct{ line, want string }{
		{"", "ksnoop: no function to trace: name one, as in ksnoop trace vfs_read (ksnoop help explains more)\n"},
		{"info", "ksnoop: no function to info: name one, as in ksnoop info vfs_read (ksnoop help explains more)\n"},
		{"-d", "ksnoop: no function to trace: name one, as in ksnoop trace vfs_read (ksnoop help explains more)\n"},
		{"dump", "ksnoop: no type to dump: name one, as in ksnoop dump file (ksnoop help explains more)\n"},
		{"--nosuch vfs_read", "ksnoop: trace has no option --nosuch: ksnoop trace --help lists them\n"},
		{"--atach=kprobe vfs_read", "ksnoop: trace has no option --atach: did you mean --attach?\n"},
		{"compile vfs_read -z", "ksnoop: compile has no option -z: ksnoop compile --help lists them\n"},
		{"lst --btf x vfs_read", "ksnoop: there is no command lst: did you mean 'list'?\n"},
		{"vfs_read(", "ksnoop: "},
		{"a( b(", "ksnoop: "},
	} {
		var stdout, stderr bytes.Buffer
		status := run(append([]string{"ksnoop"}, strings.Fields(tc.line)...), strings.NewReader(""), &stdout, &stderr)
		require.Equal(t, exitUsage, status, tc.line)
		require.Empty(t, stdout.String())
		require.True(t, strings.HasPrefix(stderr.String(), tc.want), stderr.String())
	}
}

func TestHelpAndVersion(t *testing.T) {
	for line, want := range map[string]string{
		"-h": "vfs_read(return < 0)", "help": "vfs_read(return < 0)", "help info": "ksnoop info", "-V": "ksnoop version",
	} {
		var stdout, stderr bytes.Buffer
		require.Zero(t, run(append([]string{"ksnoop"}, strings.Fields(line)...), strings.NewReader(""), &stdout, &stderr), line)
		require.Contains(t, stdout.String(), want)
		require.Empty(t, stderr.String())
	}
}
