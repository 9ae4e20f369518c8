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
		{"info -- -x", "info -- -x"},
		{"list vfs_* -- tcp_*", "list -- vfs_* tcp_*"},
		{"-s vfs_read vfs_open", "trace -s -- vfs_read vfs_open"},
		{"vfs_read --attach kprobe --stack", "trace --attach kprobe --stack -- vfs_read"},
		{"compile --btf x vfs_read --kernel-features=6.12", "compile --btf x --kernel-features=6.12 -- vfs_read"},
		{"list vfs_*", "list -- vfs_*"},
		{"-f x", "trace --"},
		{"-f x -p 12 vfs_read --file=y", "trace -p 12 -- vfs_read"},
		{"info -fx -d", "info -d --"},
		{"-p -f -f -p", "trace -p -f --"},
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

// What is behind -- is a command for trace, and left as it is.
func TestParseCommand(t *testing.T) {
	for _, tc := range []struct{ line, want, command string }{
		{"vfs_read -- ls", "trace -- vfs_read", "ls"},
		{"vfs_read -d -- ls -d -- -h --nosuch", "trace -d -- vfs_read", "ls -d -- -h --nosuch"},
		{"trace a b --tree -- info -V", "trace --tree -- a b", "info -V"},
		{"vfs_read --comm -- -d", "trace --comm -- -d -- vfs_read", ""},
		{"vfs_read", "trace -- vfs_read", ""},
		{"-f x -- ls -f y", "trace --", "ls -f y"},
	} {
		app := newApp(io.Discard, io.Discard)
		got, err := parseArgs(app, strings.Fields(tc.line))
		require.NoError(t, err, tc.line)
		require.Equal(t, tc.want, strings.Join(got, " "), tc.line)
		require.Equal(t, tc.command, strings.Join(lineIn(app).command, " "), tc.line)
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
		{"-- ls", "ksnoop: no function to trace before --, behind which a command stands: as in ksnoop vfs_read -- ls\n"},
		{"vfs_read --", "ksnoop: no command behind --: as in ksnoop vfs_read -- ls\n"},
		{"vfs_read -n 0", "ksnoop: --events is \"0\": it must be a number from 1 to 4611686018427387904\n"},
		{"vfs_read --for 0s", "ksnoop: --for is \"0s\": it must be a time such as 500ms, 2m or 10 (seconds)\n"},
		{"vfs_read --for inf", "ksnoop: --for is \"inf\": it must be a time such as 500ms, 2m or 10 (seconds)\n"},
		{"vfs_read --tree", "ksnoop: --tree follows a process: name it with --pid, or let ksnoop start a command, as in ksnoop --tree vfs_read -- ls\n"},
		{"vfs_read --tree -p 1 -- ls", "ksnoop: --tree follows one process: that of --pid or the command behind --, not both\n"},
		{"vfs_read --tree -t 1", "ksnoop: --tree follows processes, and --tid is a thread: name its process with --pid\n"},
		{"vfs_read --ready-fd 2", "ksnoop: --ready-fd is \"2\": it must be the number of an open file, from 3 on\n"},
		{"vfs_read --ready-fd 98765", "ksnoop: --ready-fd is 98765: ksnoop has inherited no open file with that number\n"},
		{"vfs_read --cgroup /proc", "ksnoop: --cgroup is \"/proc\": that is no directory below a mount of cgroup v2, such as /sys/fs/cgroup\n"},
		{"vfs_read --cgroup /no/such", "ksnoop: --cgroup is \"/no/such\": no such file or directory\n"},
		{"vfs_read --comm abcdefghijklmnop", "ksnoop: --comm is \"abcdefghijklmnop\": no thread can have such a name, which has 1 to 15 characters\n"},
		{"vfs_read --comm [", "ksnoop: --comm: the '[' has no closing ']'\n  [\n  ^\n"},
		{"vfs_read --uid nobody-of-that-name", "ksnoop: --uid is \"nobody-of-that-name\": there is no such user in /etc/passwd; give the number\n"},
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
