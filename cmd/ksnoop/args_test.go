package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// understood is how a command line was understood: the options that were given
// first, with their values, then operands, and what is behind --.
func understood(t *testing.T, line string) string {
	args := strings.Fields(line)
	c := invoke(t, args...)
	words := []string{subcommandOf(readDraft(args).operands).name}
	c.options.Visit(func(o *pflag.Flag) {
		if values := valuesOf(o); values != nil {
			words = append(words, "--"+o.Name, fmt.Sprint(values))
		} else if o.Value.Type() == "bool" {
			words = append(words, "--"+o.Name)
		} else {
			words = append(words, "--"+o.Name+"="+o.Value.String())
		}
	})
	words = append(words, c.operands...)
	if c.behind != nil {
		words = append(append(words, "--"), c.behind...)
	}
	return strings.Join(words, " ")
}

// Options stand anywhere, as with getopt; the command is trace by default, and
// what is behind -- is a command for trace, and left as it is.
func TestReadArgs(t *testing.T) {
	for _, tc := range []struct{ line, want string }{
		{"vfs_read", "trace vfs_read"},
		{"trace vfs_read", "trace vfs_read"},
		{"info vfs_read tcp_sendmsg", "info vfs_read tcp_sendmsg"},
		{"-p 12 vfs_read", "trace --pid=12 vfs_read"},
		{"vfs_read -p 12", "trace --pid=12 vfs_read"},
		{"vfs_read -p12 -d", "trace --pid=12 --debug vfs_read"},
		{"-dp 12 vfs_read", "trace --debug --pid=12 vfs_read"},
		{"-dvp12 vfs_read", "trace --debug --verbose --pid=12 vfs_read"},
		{"-P=4 vfs_read", "trace --pages=4 vfs_read"},
		{"--pid=12 vfs_read --debug", "trace --pid=12 --debug vfs_read"},
		{"--pid 12 vfs_read", "trace --pid=12 vfs_read"},
		{"--pid=-1 vfs_read", "trace --pid=-1 vfs_read"},
		{"-p -1 vfs_read", "trace --pid=-1 vfs_read"},
		{"-p 1 --pid 2 vfs_read -p 3", "trace --pid=3 vfs_read"},
		{"-d info vfs_read -v", "info --debug --verbose vfs_read"},
		{"-p info vfs_read", "trace --pid=info vfs_read"},
		{"--btf list info vfs_read", "info --btf=list vfs_read"},
		{"-p -h vfs_read", "trace --pid=-h vfs_read"},
		{"trace trace", "trace trace"},
		{"trace info", "trace info"},
		{"trace help", "trace help"},
		{"t", "trace t"},
		{"-", "trace -"},
		{"info -- -x", "info -x"},
		{"list vfs_* -- tcp_*", "list vfs_* tcp_*"},
		{"-s vfs_read vfs_open", "trace --stack vfs_read vfs_open"},
		{"vfs_read --attach kprobe --stack", "trace --attach=kprobe --stack vfs_read"},
		{"compile --btf x vfs_read --kernel-features=6.12", "compile --btf=x --kernel-features=6.12 vfs_read"},
		{"list vfs_*", "list vfs_*"},
		{"-f x", "trace --file [x]"},
		{"-f x -p 12 vfs_read --file=y", "trace --file [x y] --pid=12 vfs_read"},
		{"info -fx -d", "info --file [x] --debug"},
		{"-p -f -f -p", "trace --pid=-f --file [-p]"},
		{"doctor", "doctor"},
		{"vfs_read -- ls", "trace vfs_read -- ls"},
		{"vfs_read -d -- ls -d -- -h --nosuch", "trace --debug vfs_read -- ls -d -- -h --nosuch"},
		{"trace a b --pid 3 -- info -V", "trace --pid=3 a b -- info -V"},
		{"trace a b --tree -- info -V", "trace --tree a b -- info -V"},
		{"vfs_read --comm -- -d", "trace --comm=-- --debug vfs_read"},
		{"-f x -- ls -f y", "trace --file [x] -- ls -f y"},
		{"test x -- ls -l", "test x -- ls -l"},
	} {
		require.Equal(t, tc.want, understood(t, tc.line), tc.line)
	}
}

// Help and the version are asked for anywhere, whatever else is wrong.
func TestHelpAnywhere(t *testing.T) {
	for line, want := range map[string]string{
		"-h": "ksnoop - show", "help": "ksnoop - show", "vfs_read --help": "ksnoop - show", "--nosuch -dh": "ksnoop - show",
		"help info": "ksnoop info - ", "info -h": "ksnoop info - ", "-h info": "ksnoop info - ", "-h help info": "ksnoop info - ",
		"help spec": "SPEC: ", "-V": "ksnoop version ", "vfs_read --version": "ksnoop version ", "-hV": "ksnoop version ",
	} {
		status, stdout, stderr := runLine(strings.Fields(line)...)
		require.Zero(t, status, line)
		require.Empty(t, stderr)
		require.Contains(t, strings.Join(strings.Split(stdout, "\n")[:min(2, strings.Count(stdout, "\n"))], "\n"), want, line)
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
		{"--attahc vfs_read", "ksnoop: trace has no option --attahc: did you mean --attach?\n"},
		{"---attach vfs_read", "ksnoop: trace has no option ---attach: did you mean --attach?\n"},
		{"--=x vfs_read", "ksnoop: trace has no option --: ksnoop trace --help lists them\n"},
		{"list vfs_* -o json", "ksnoop: list has no option -o: ksnoop list --help lists them\n"},
		{"vfs_read -test.v", "ksnoop: trace has no option -test.v: ksnoop trace --help lists them\n"},
		{"vfs_read -dzp", "ksnoop: trace has no option -z: ksnoop trace --help lists them\n"},
		{"vfs_read -é", "ksnoop: trace has no option -é: ksnoop trace --help lists them\n"},
		{"vfs_read -p", "ksnoop: --pid has no value: ksnoop trace --help explains it\n"},
		{"compile vfs_read --btf", "ksnoop: --btf has no value: ksnoop compile --help explains it\n"},
		{"vfs_read -p 1 --pid", "ksnoop: --pid has no value: ksnoop trace --help explains it\n"},
		{"vfs_read --debug=x", "ksnoop: --debug is \"x\": it takes no value, or true or false\n"},
		{"vfs_read --pid=", "ksnoop: --pid is \"\": it must be a number from 1 to 4194304\n"},
		{"vfs_read -p x", "ksnoop: --pid is \"x\": it must be a number from 1 to 4194304\n"},
		{"doctor vfs_read", "ksnoop: doctor looks at the whole system and takes no operand \"vfs_read\" (ksnoop doctor --help explains more)\n"},
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

// FuzzArgs: any words are understood, or refused as a mistake on the command line.
func FuzzArgs(f *testing.F) {
	f.Add("info -dp12 vfs_read --nosuch=x -- ls -l")
	f.Add("check -o a -oc=d ---x -é --btf= - -- --")
	f.Fuzz(func(t *testing.T, line string) {
		do, c, err := readArgs(strings.Split(line, " "))
		if err != nil {
			require.True(t, isUsage(err), err)
			return
		}
		require.NotNil(t, do)
		require.NotNil(t, c)
	})
}
