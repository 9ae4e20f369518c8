package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/getopt"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
)

// understand runs a command line with a command that only returns the context it is
// given.
func understand(t *testing.T, args ...string) (got *cli.Context) {
	e := &environment{Streams: term.Streams{Out: io.Discard, Err: io.Discard}}
	app := newApp(e)
	repeated := map[string][]string{}
	app.Metadata["repeated"] = repeated
	for _, c := range app.Commands {
		c.Before = nil
		c.Action = func(c *cli.Context) error {
			got = c
			return nil
		}
		for _, f := range c.Flags {
			if f, ok := f.(valued); ok { // accept any value
				f.value.parse = func(text string) error {
					if f.value.repeats {
						repeated[f.Name] = append(repeated[f.Name], text)
					}
					return nil
				}
			}
		}
	}
	require.NoError(t, app.Run(e.words(app, args)))
	require.NotNil(t, got, args)
	return got
}

// understood returns how a command line was understood: the given options with their
// values first, then the operands, and the words after --.
func understood(t *testing.T, line string) string {
	c := understand(t, strings.Fields(line)...)
	said := []string{c.Command.Name}
	seen := map[string]bool{}
	for _, given := range getopt.Split(strings.Fields(line), finder(c.App)).Options {
		o := given.Name
		if seen[o] {
			continue
		}
		seen[o] = true
		require.True(t, c.IsSet(o), o)
		switch {
		case !given.TakesValue:
			said = append(said, "--"+o)
		case several(c, o) != nil:
			said = append(said, "--"+o, fmt.Sprint(several(c, o)))
		default:
			said = append(said, "--"+o+"="+c.String(o))
		}
	}
	if !takesCommand(c.Command) {
		return strings.Join(append(said, allWords(c)...), " ")
	}
	operands, behind := commandWords(c)
	said = append(said, operands...)
	if behind != nil {
		said = append(append(said, "--"), behind...)
	}
	return strings.Join(said, " ")
}

// several returns the values of an option that may be given several times, or nil.
func several(c *cli.Context, option string) []string {
	return c.App.Metadata["repeated"].(map[string][]string)[option]
}

// TestReadArgs verifies that options may be anywhere, as with getopt; that the
// command is trace by default; and that the words after -- are a command for trace,
// unchanged.
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
		{"vfs_read --comm -- -d", "trace --comm [--] --debug vfs_read"},
		{"-f x -- ls -f y", "trace --file [x] -- ls -f y"},
		{"test x -- ls -l", "test x -- ls -l"},
	} {
		require.Equal(t, tc.want, understood(t, tc.line), tc.line)
	}
}

// TestHelpAnywhere verifies that help and the version may be asked for anywhere,
// even if something else is wrong.
func TestHelpAnywhere(t *testing.T) {
	for line, want := range map[string]string{
		"-h": "ksnoop - show", "help": "ksnoop - show", "vfs_read --help": "ksnoop - show", "--nosuch -dh": "ksnoop - show",
		"help info": "ksnoop info - ", "info -h": "ksnoop info - ", "-h info": "ksnoop info - ", "-h help info": "ksnoop info - ",
		"help help": "ksnoop help - ", "help --help": "ksnoop help - ", "help -x --help": "ksnoop help - ",
		"help spec": "SPEC: ", "-V": "ksnoop version ", "vfs_read --version": "ksnoop version ", "-hV": "ksnoop version ",
	} {
		status, stdout, stderr := runLine(strings.Fields(line)...)
		require.Zero(t, status, line)
		require.Empty(t, stderr)
		require.Contains(t, strings.Join(strings.Split(stdout, "\n")[:min(2, strings.Count(stdout, "\n"))], "\n"), want, line)
	}
}

// TestUsageErrors verifies that mistakes on the command line are reported before the
// kernel is asked for anything, with status 2 and nothing on stdout.
func TestUsageErrors(t *testing.T) {
	for _, tc := range []struct{ line, want string }{
		{"", "ksnoop: trace needs a function, as in ksnoop trace vfs_read (ksnoop help trace explains more)\n"},
		{"info", "ksnoop: info needs a function, as in ksnoop info vfs_read (ksnoop help info explains more)\n"},
		{"watch", "ksnoop: watch needs a variable, as in ksnoop watch '(int)@panic_timeout' (ksnoop help watch explains more)\n"},
		{"follow", "ksnoop: follow needs a function and an object, as in ksnoop follow 'ip_send_skb(skb)' (ksnoop help follow explains more)\n"},
		{"-d", "ksnoop: trace needs a function, as in ksnoop trace vfs_read (ksnoop help trace explains more)\n"},
		{"trace --hlep", "ksnoop: trace has no option --hlep: did you mean --help?\n"},
		{"list --verison", "ksnoop: list has no option --verison: did you mean --version?\n"},
		{"dump", "ksnoop: dump needs a type, as in ksnoop dump file (ksnoop help dump explains more)\n"},
		{"--nosuch vfs_read", "ksnoop: trace has no option --nosuch: ksnoop trace --help lists them\n"},
		{"--atach=kprobe vfs_read", "ksnoop: trace has no option --atach: did you mean --attach?\n"},
		{"--attahc vfs_read", "ksnoop: trace has no option --attahc: did you mean --attach?\n"},
		{"---attach vfs_read", "ksnoop: trace has no option ---attach: did you mean --attach?\n"},
		{"--=x vfs_read", "ksnoop: trace has no option --: ksnoop trace --help lists them\n"},
		{"check -n 3 vfs_read", "ksnoop: check has no option -n: ksnoop check --help lists them\n"},
		{"vfs_read -test.v", "ksnoop: --tid is \"est.v\": it must be a number; --comm est.v traces processes by their name\n"},
		{"vfs_read -dzp", "ksnoop: trace has no option -z: ksnoop trace --help lists them\n"},
		{"vfs_read -é", "ksnoop: trace has no option -é: ksnoop trace --help lists them\n"},
		{"vfs_read --h", "ksnoop: trace has no option --h: ksnoop trace --help lists them\n"},
		{"--V", "ksnoop: trace has no option --V: ksnoop trace --help lists them\n"},
		{"vfs_read --p 1", "ksnoop: trace has no option --p: ksnoop trace --help lists them\n"},
		{"vfs_read -p 1 --p", "ksnoop: trace has no option --p: ksnoop trace --help lists them\n"},
		{"vfs_read -p 1 --p 2", "ksnoop: trace has no option --p: ksnoop trace --help lists them\n"},
		{"vfs_read -s --s", "ksnoop: trace has no option --s: ksnoop trace --help lists them\n"},
		{"check -f x --f y", "ksnoop: check has no option --f: ksnoop check --help lists them\n"},
		{"compile --btf /dev/null -o text --o json vfs_read", "ksnoop: compile has no option --o: ksnoop compile --help lists them\n"},
		{"vfs_read --debug=x --nosuch", "ksnoop: --debug is \"x\": it takes no value, or true or false\n"},
		{"vfs_read --nosuch --debug=x -p", "ksnoop: trace has no option --nosuch: ksnoop trace --help lists them\n"},
		{"vfs_read -p", "ksnoop: --pid has no value: ksnoop trace --help explains it\n"},
		{"compile vfs_read --btf", "ksnoop: --btf has no value: ksnoop compile --help explains it\n"},
		{"vfs_read -p 1 --pid", "ksnoop: --pid has no value: ksnoop trace --help explains it\n"},
		{"vfs_read --debug=x", "ksnoop: --debug is \"x\": it takes no value, or true or false\n"},
		{"vfs_read --help=x", "ksnoop: --help is \"x\": it takes no value, or true or false\n"},
		{"--version=x", "ksnoop: --version is \"x\": it takes no value, or true or false\n"},
		{"help -x", "ksnoop: help has no option -x: ksnoop help --help lists them\n"},
		{"help --h", "ksnoop: help has no option --h: ksnoop help --help lists them\n"},
		{"help trace --nosuch", "ksnoop: help has no option --nosuch: ksnoop help --help lists them\n"},
		{"vfs_read --pid=", "ksnoop: --pid is \"\": it must be a number from 1 to 4194304\n"},
		{"vfs_read -p 1x", "ksnoop: --pid is \"1x\": it must be a number from 1 to 4194304\n"},
		{"vfs_read -p -1", "ksnoop: --pid is \"-1\": it must be a number from 1 to 4194304\n"},
		{"vfs_read -p cat", "ksnoop: --pid is \"cat\": it must be a number; --comm cat traces processes by their name\n"},
		{"vfs_read -t cat", "ksnoop: --tid is \"cat\": it must be a number; --comm cat traces processes by their name\n"},
		{"--json vfs_read", "ksnoop: trace has no option --json: it is written --output json\n"},
		{"-l vfs_*", "ksnoop: trace has no option -l: write ksnoop list 'GLOB'\n"},
		{"--add vfs_read", "ksnoop: trace has no option --add: write ksnoop SPEC, as in ksnoop 'vfs_read(count)'\n"},
		{"vfs_read -j", "ksnoop: trace has no option -j: it is written --output json\n"},
		{"vfs_read --timeout 5", "ksnoop: trace has no option --timeout: it is written --for TIME\n"},
		{"list --json vfs_*", "ksnoop: list has no option --json: it is written --output json\n"},
		{"doctor vfs_read", "ksnoop: doctor examines the whole system and takes no operand \"vfs_read\" (ksnoop doctor --help explains more)\n"},
		{"compile vfs_read -z", "ksnoop: compile has no option -z: ksnoop compile --help lists them\n"},
		{"lst --btf x vfs_read", "ksnoop: there is no command lst: did you mean 'list'?\n"},
		{"-- ls", "ksnoop: no function to trace before the -- of a command: as in ksnoop vfs_read -- ls\n"},
		{"vfs_read --", "ksnoop: no command after --: name it, or leave out the --\n"},
		{"watch @x --", "ksnoop: no command after --: name it, or leave out the --\n"},
		{"test -- ls", "ksnoop: test needs a probe file, as in ksnoop test tcp.probes -- ./run.sh (ksnoop help test explains more)\n"},
		{"record -w /no/x --ready-file /no/./x vfs_read", "ksnoop: --ready-file and the recording are both /no/x: give each a file of its own\n"},
		{"vfs_read --record /no/x --ready-file /no/x", "ksnoop: --ready-file and the recording are both /no/x: give each a file of its own\n"},
		{"record vfs_read", "ksnoop: record writes to no file: name it, as in ksnoop record -w FILE vfs_read\n"},
		{"record -f x", "ksnoop: record writes to no file: name it, as in ksnoop record -w FILE -f x\n"},
		{"print 1 --cpu=", "ksnoop: --cpu has no value: ksnoop print --help explains it\n"},
		{"vfs_read --container=", "ksnoop: --container has no value: ksnoop trace --help explains it\n"},
		{"vfs_read --cgroup=", "ksnoop: --cgroup has no value: ksnoop trace --help explains it\n"},
		{"vfs_read --record=", "ksnoop: --record has no value: ksnoop trace --help explains it\n"},
		{"vfs_read --record -", "ksnoop: --record is \"-\": the events are printed on standard output: name a file, or use ksnoop record -w -\n"},
		{"vfs_read --ready-file=", "ksnoop: --ready-file has no value: ksnoop trace --help explains it\n"},
		{"vfs_read --sort=", "ksnoop: --sort has no value: ksnoop trace --help explains it\n"},
		{"record -w= vfs_read", "ksnoop: --write has no value: ksnoop record --help explains it\n"},
		{"compile --btf= vfs_read", "ksnoop: --btf has no value: ksnoop compile --help explains it\n"},
		{"compile --kernel-features= vfs_read", "ksnoop: --kernel-features is \"\": it must be 5.10, 6.1, 6.12, 6.18 or 7.2\n"},
		{"test --prom-textfile= x", "ksnoop: --prom-textfile has no value: ksnoop test --help explains it\n"},
		{"vfs_read -p abc -p 1", "ksnoop: --pid is \"abc\": it must be a number; --comm abc traces processes by their name\n"},
		{"vfs_read --comm a* --comm [", "ksnoop: --comm: the '[' has no closing ']'\n"},
		{"record", "ksnoop: record needs a function, as in ksnoop record -w FILE vfs_read (ksnoop help record explains more)\n"},
		{"help -- trace list", "ksnoop: help explains one command, or the language, and there are 2 words: as in ksnoop help trace\n"},
		{"help -- trcae", "ksnoop: there is no command trcae: did you mean 'ksnoop help trace'?\n"},
		{"help trace list", "ksnoop: help explains one command, or the language, and there are 2 words: as in ksnoop help trace\n"},
		{"check --btf= vfs_read", "ksnoop: --btf has no value: ksnoop check --help explains it\n"},
		{"vfs_read -n 0", "ksnoop: --events is \"0\": it must be a number from 1 to 4611686018427387904\n"},
		{"vfs_read --for 0s", "ksnoop: --for is \"0s\": it must be a time from 1ns to 2562047h, such as 500ms, 2m or 10 (seconds)\n"},
		{"vfs_read --for 99999999h", "ksnoop: --for is \"99999999h\": it must be a time from 1ns to 2562047h, such as 500ms, 2m or 10 (seconds)\n"},
		{"vfs_read --for inf", "ksnoop: --for is \"inf\": it must be a time from 1ns to 2562047h, such as 500ms, 2m or 10 (seconds)\n"},
		{"vfs_read --tree", "ksnoop: --tree follows a process: name it with --pid, or let ksnoop start a command, as in ksnoop --tree vfs_read -- ls\n"},
		{"vfs_read --tree -p 1 -- ls", "ksnoop: --tree follows one process: that of --pid or the command after --, not both\n"},
		{"vfs_read --tree -t 1", "ksnoop: --tree follows processes, and --tid is a thread: name its process with --pid\n"},
		{"vfs_read --ready-fd 2", "ksnoop: --ready-fd is \"2\": it must be the number of an open file, from 3 on\n"},
		{"vfs_read --ready-fd 98765", "ksnoop: --ready-fd is 98765: ksnoop has inherited no open file with that number\n"},
		{"vfs_read --cgroup /proc", "ksnoop: --cgroup is \"/proc\": that is not a directory below a mount of cgroup v2, such as /sys/fs/cgroup\n"},
		{"vfs_read --cgroup /sys --container web", "ksnoop: --container is the cgroup of a container, and --cgroup is given, too: leave out one of them\n"},
		{"vfs_read --cgroup /no/such", "ksnoop: --cgroup is \"/no/such\": no such file or directory\n"},
		{"vfs_read --comm abcdefghijklmnop", "ksnoop: --comm is \"abcdefghijklmnop\": no thread can have such a name, which has 1 to 15 characters\n"},
		{"vfs_read --comm [", "ksnoop: --comm: the '[' has no closing ']'\n  [\n  ^\n"},
		{"follow --in [ do_dentry_open(f)", "ksnoop: --in: the '[' has no closing ']'\n  [\n  ^\n"},
		{"follow --in ext4:[b-a] do_dentry_open(f)", "ksnoop: --in: the range b-a is backwards\n  ext4:[b-a]\n       ^^^^^\n"},
		{"follow --in= do_dentry_open(f)", "ksnoop: --in has no value: ksnoop follow --help explains it\n"},
		{"replay --func [ /nope", "ksnoop: --func: the '[' has no closing ']'\n  [\n  ^\n"},
		{"vfs_read --uid nobody-of-that-name", "ksnoop: --uid is \"nobody-of-that-name\": there is no such user in /etc/passwd; give the number\n"},
		{"vfs_read(", "ksnoop: "},
		{"a( b(", "ksnoop: "},
	} {
		var stdout, stderr bytes.Buffer
		status := ksnoopStatus(append([]string{"ksnoop"}, strings.Fields(tc.line)...), strings.NewReader(""), &stdout, &stderr)
		require.Equal(t, exit.Usage, status, tc.line)
		require.Empty(t, stdout.String())
		require.True(t, strings.HasPrefix(stderr.String(), tc.want), tc.line+": "+stderr.String())
	}
}

func TestHelpAndVersion(t *testing.T) {
	for line, want := range map[string]string{
		"-h": "vfs_read(return < 0)", "help": "vfs_read(return < 0)", "help info": "ksnoop info", "-V": "ksnoop version",
	} {
		var stdout, stderr bytes.Buffer
		require.Zero(t, ksnoopStatus(append([]string{"ksnoop"}, strings.Fields(line)...), strings.NewReader(""), &stdout, &stderr), line)
		require.Contains(t, stdout.String(), want)
		require.Empty(t, stderr.String())
	}
}

// TestOptionsAgree verifies that an option takes a value in all commands or in none,
// because words are split before the command is known.
func TestOptionsAgree(t *testing.T) {
	options := map[string]getopt.Option{}
	for _, c := range newApp(&environment{}).Commands {
		for _, f := range c.Flags {
			o := getopt.Option{Name: f.Names()[0], TakesValue: takesValue(f)}
			for _, name := range f.Names() {
				if have, ok := options[name]; ok {
					require.Equal(t, have.TakesValue, o.TakesValue, c.Name)
				}
				options[name] = o
			}
		}
	}
	require.Greater(t, len(options), 40)
}

// TestOptionsAreBound verifies that no code reads the value of an option by its name, in
// which a typing error would not be noticed.
func TestOptionsAreBound(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	byName := regexp.MustCompile(`\b(c|ctx)\.(IsSet|Count|Value|Lookup|String|Bool|Generic|Path|Duration|Timestamp|(Int|Uint|Float64|String)(64)?(Slice)?)\(|\.Has\("|\.Value\("`)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Empty(t, byName.FindAllString(string(text), -1), name)
	}
}

// FuzzArgs verifies that any words are understood, or refused as a mistake on the
// command line in words of ksnoop itself, not of package flag.
func FuzzArgs(f *testing.F) {
	f.Add("info -dp12 vfs_read --nosuch=x -- ls -l")
	f.Add("check -o a -oc=d ---x -é --btf= - -- --")
	f.Add("-p 1 --p --h --s=x --=")
	f.Fuzz(func(t *testing.T, line string) {
		e := &environment{Streams: term.Streams{Out: io.Discard, Err: io.Discard}}
		app := newApp(e)
		for _, c := range app.Commands {
			c.Action = func(*cli.Context) error { return nil }
		}
		err := app.Run(e.words(app, strings.Split(line, " ")))
		require.True(t, err == nil || exit.IsUsage(err), err)
		if err != nil && !strings.Contains(line, "flag") {
			require.NotContains(t, err.Error(), "flag")
		}
	})
}

// TestRepeated covers options that may be given several times, in every spelling,
// with others between.
func TestRepeated(t *testing.T) {
	for _, line := range []string{"-o a -oc=d --output e --output=f=g --btf h -f i x", "x -o a --btf h -f i -oc=d -o=e --output f=g"} {
		c := understand(t, append([]string{"check"}, strings.Fields(line)...)...)
		require.Equal(t, []string{"a", "c=d", "e", "f=g"}, several(c, "output"), line)
		require.Equal(t, []string{"h"}, several(c, "btf"))
		require.Equal(t, []string{"i"}, several(c, "file"))
	}
	require.Equal(t, []string{" a,b "}, several(understand(t, "check", "-f", " a,b ", "x"), "file"), "a file's name is no list")
	c := understand(t, strings.Fields("trace -o json vfs_read -f x --file=y -p 1 -p 2")...)
	require.Equal(t, []string{"x", "y"}, several(c, "file"))
	require.Equal(t, "json", c.String("output"))
	require.Equal(t, "2", c.String("pid"), "the last is valid")
}

// TestLibrarySettings verifies what package cli is told, also for flags and errors that a
// command may get: no value is split at commas, no command has a second help, main alone
// prints errors and ends the program, and completion is our own.
func TestLibrarySettings(t *testing.T) {
	app := newApp(&environment{Streams: term.Streams{Out: io.Discard, Err: io.Discard}})
	c := app.Command("doctor")
	c.Flags = append(c.Flags, &cli.StringSliceFlag{Name: "names"})
	var got []string
	c.Action = func(c *cli.Context) error {
		got = c.StringSlice("names")
		return nil
	}
	require.NoError(t, app.Run([]string{"ksnoop", "doctor", "--names", "a,b"}))
	require.Equal(t, []string{"a,b"}, got)
	for _, c := range app.Commands {
		require.True(t, c.HideHelp && c.HideHelpCommand, c.Name)
		require.Nil(t, c.Command("help"), c.Name)
	}

	exiter, errWriter := cli.OsExiter, cli.ErrWriter
	defer func() { cli.OsExiter, cli.ErrWriter = exiter, errWriter }()
	var printed strings.Builder
	cli.OsExiter = func(status int) { t.Errorf("package cli ended the program with status %d", status) }
	cli.ErrWriter = &printed
	for _, words := range []string{"ksnoop doctor", "ksnoop"} {
		failed := cli.Exit("cannot", 7)
		app := newApp(&environment{Streams: term.Streams{Out: &printed, Err: &printed}})
		app.Action = func(*cli.Context) error { return failed }
		app.Command("doctor").Action = app.Action
		require.Equal(t, failed, app.Run(strings.Fields(words)))
		require.Empty(t, printed.String())
	}
	for _, words := range []string{"ksnoop doctor --generate-bash-completion", "ksnoop --generate-bash-completion"} {
		app := newApp(&environment{Streams: term.Streams{Out: &printed, Err: &printed}, line: &getopt.Line{}})
		require.True(t, exit.IsUsage(app.Run(strings.Fields(words))), words)
		require.Empty(t, printed.String())
	}
}

// TestCannotRun verifies that a command that cannot run is reported before the
// kernel is asked for anything.
func TestCannotRun(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	require.NoError(t, os.WriteFile(plain, []byte("no program"), 0o644))
	for _, tc := range []struct {
		command string
		status  int
		want    string
	}{
		{"nosuch-program", exit.NotFound, "ksnoop: run nosuch-program: there is no such program in $PATH\n"},
		{dir + "/none", exit.NotFound, "ksnoop: run " + dir + "/none: no such file or directory\n"},
		{plain, exit.NotExecutable, "ksnoop: run " + plain + ": permission denied\n"},
		{dir, exit.NotExecutable, "ksnoop: run " + dir + ": is a directory\n"},
	} {
		var stdout, stderr bytes.Buffer
		status := ksnoopStatus([]string{"ksnoop", "vfs_read", "--", tc.command}, strings.NewReader(""), &stdout, &stderr)
		require.Equal(t, tc.want, stderr.String())
		require.Equal(t, tc.status, status)
		require.Empty(t, stdout.String())
	}
}

func TestTestCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.probes")
	require.NoError(t, os.WriteFile(file, []byte("ksnoop-probes 1\nsuite x\nrun true\nassert abc vfs_read(count > 5) never\nmetric m vfs_read() count\n"), 0o644))
	alike := filepath.Join(t.TempDir(), "alike.probes")
	require.NoError(t, os.WriteFile(alike, []byte("ksnoop-probes 1\nsuite x\nrun true\nmetric a-b vfs_read() count\nmetric a.b vfs_read() count\n"), 0o644))
	both := filepath.Join(t.TempDir(), "both")
	for _, tc := range []struct {
		line   string
		status int
		want   string
	}{
		{"test --list " + file, 0, "  NAME  KIND    WHAT\n  run   run     run true status 0\n  abc   assert  assert abc vfs_read(count > 5) never\n  m     metric  metric m vfs_read() count\n"},
		{"test --list -o json " + file, exit.Usage, "ksnoop: --list prints a table, and no results for -o: leave out one of them\n"},
		{"test", exit.Usage, "ksnoop: test needs a probe file, as in ksnoop test tcp.probes -- ./run.sh (ksnoop help test explains more)\n"},
		{"test a b", exit.Usage, "ksnoop: test takes one probe file: as in ksnoop test tcp.probes -- ./run.sh\n"},
		{"test /nosuch/file", exit.Usage, "ksnoop: read specs: open /nosuch/file: no such file or directory\n"},
		{"test --xfail abb " + file, exit.Usage, "ksnoop: --xfail is \"abb\": " + file + " has no such assertion; did you mean 'abc'?\n"},
		{"test " + file + " -- ls", exit.Usage, "ksnoop: a command follows --, and " + file + " has one in line 3: leave one of them out\n"},
		{"test --prom-textfile /nosuch/x.prom " + file, exit.Failure, "ksnoop: write the metrics: create /nosuch/x.prom in its directory: no such file or directory\n"},
		{"test -o json=" + both + " --ready-file " + both + " " + file, exit.Usage, "ksnoop: --ready-file and --output both write " + both + ": give each a file of its own\n"},
		{"test -o json=" + both + " --prom-textfile " + both + " " + file, exit.Usage, "ksnoop: --prom-textfile and --output both write " + both + ": give each a file of its own\n"},
		{"test --prom-textfile " + both + " --ready-file " + both + " " + file, exit.Usage, "ksnoop: --prom-textfile and --ready-file both write " + both + ": give each a file of its own\n"},
		{"test --prom-textfile / " + file, exit.Usage, "ksnoop: / is a directory: name a file in it for the metrics\n"},
		{"test --prom-textfile x.prom " + alike, exit.Usage, "ksnoop: write the metrics: ksnoop_x_a-b and ksnoop_x_a.b would both be ksnoop_x_a_b in Prometheus: rename one of them\n"},
		{"test -o nothing " + file, exit.Usage, ""},
		{"test --attach nothing " + file, exit.Usage, ""},
	} {
		var stdout, stderr strings.Builder
		status := ksnoopStatus(append([]string{"ksnoop"}, strings.Fields(tc.line)...), strings.NewReader(""), &stdout, &stderr)
		require.Equal(t, tc.status, status, tc.line)
		if tc.want != "" {
			require.Equal(t, tc.want, stdout.String()+stderr.String())
		}
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	var stderr strings.Builder
	require.Equal(t, exit.Failure, ksnoopStatus([]string{"ksnoop", "test", "--list", file}, strings.NewReader(""), full, &stderr))
	require.Contains(t, stderr.String(), "no space left on device")
}

// takesCommand reports whether a command runs the words after --.
func takesCommand(c *cli.Command) bool { return strings.Contains(c.ArgsUsage, "-- COMMAND") }
