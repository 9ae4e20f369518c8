package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/fixture"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// typedLines are keys that are typed in a shell, with the arguments that ksnoop
// receives then.
var typedLines = []struct {
	keys, want string
	only       string // the shell that has this syntax, or "" for all
}{
	{keys: "ksnoop compile --btf btf 'vfs_read(fi\t->fl\t,re\t)'\n", want: "<compile><--btf><btf><vfs_read(file->flags,return)>"},
	{keys: "ksnoop compile --btf btf 'vfs_read(count, fi\t->po\t > 3)'\n", want: "<compile><--btf><btf><vfs_read(count, file->pos > 3)>"},
	{keys: "ksnoop compile --btf btf \"vfs_o\t(pa\t:str\t)\"\n", want: "<compile><--btf><btf><vfs_open(path:string)>"},
	{keys: "ksnoop compile --btf btf \"vfs_read(\\$comm, fi\t->fl\t)\"\n", want: "<compile><--btf><btf><vfs_read($comm, file->flags)>"},
	{keys: "ksnoop compile --btf btf 'vfs_read($comm == \"a b(\", fi\t->fl\t)'\n", want: `<compile><--btf><btf><vfs_read($comm == "a b(", file->flags)>`},
	{keys: "ksnoop compile --btf btf 'vfs_read(count) if $comm == \"it\" && (file->fl\t == 1)'\n", want: `<compile><--btf><btf><vfs_read(count) if $comm == "it" && (file->flags == 1)>`},
	{keys: "ksnoop compile --btf btf 'vfs_read(count == '\"'a'\"', fi\t)'\n", want: "<compile><--btf><btf><vfs_read(count == 'a', file)>"},
	{keys: "ksnoop compile --btf btf \"vfs_read(\\$comm == \\\"a\\\", fi\t->fl\t)\"\n", want: `<compile><--btf><btf><vfs_read($comm == "a", file->flags)>`},
	{keys: "ksnoop compile --btf btf $'vfs_read(count, fi\t->fl\t)'\n", want: "<compile><--btf><btf><vfs_read(count, file->flags)>", only: "zsh"},
	{keys: "ksnoop compile --btf btf 'p vfs_read fi\t->fl\t:x3\t'\n", want: "<compile><--btf><btf><p vfs_read file->flags:x32>"},
	{keys: "ksnoop compile --btf btf vfs_re\t x\n", want: "<compile><--btf><btf><vfs_read><x>"},
	{keys: "ksnoop compile --btf btf tp:ti\t x\n", want: "<compile><--btf><btf><tp:tick><x>"},
	{keys: "ksnoop compile --btf btf vfs_read\\(file-\\>fl\t\\)\n", want: "<compile><--btf><btf><vfs_read(file->flags)>"},
	{keys: "ksnoop compile --btf btf vfs_read\tfile)'\n", want: "<compile><--btf><btf><vfs_read(file)>", only: "bash"},
	{keys: "ksnoop list --kernel-f\t6.1\n", want: "<list><--kernel-features><6.1>"},
	{keys: "ksnoop doc\t--se\tx\n", want: "<doctor><--self-test><x>"},
	{keys: "ksnoop compile --attach=kprobe.m\tx\n", want: "<compile><--attach=kprobe.multi><x>"},
	{keys: "ksnoop compile --btf=b\tx\n", want: "<compile><--btf=btf><x>"},
	{keys: "ksnoop compile --btf b\tx\n", want: "<compile><--btf><btf><x>"},
	{keys: "ksnoop vfs_read -- mkfif\tx\n", want: "<vfs_read><--><mkfifo><x>"},
}

// TestShells verifies completion in the real shells. make test installs missing
// shells where it can; otherwise they are skipped.
func TestShells(t *testing.T) {
	for _, sh := range []struct {
		args  []string
		setUp string
	}{
		{[]string{"bash", "--norc", "--noprofile", "-i"}, "source <(ksnoop completion bash)"},
		{[]string{"zsh", "-f", "-i"}, "autoload -U compinit; compinit -D; source <(ksnoop completion zsh)"},
		{[]string{"zsh", "-f", "-i"}, "mkdir f; ksnoop completion zsh > f/_ksnoop; fpath=($PWD/f $fpath); autoload -U compinit; compinit -D"},
		{[]string{"fish", "--no-config", "-i"}, "ksnoop completion fish | source"},
	} {
		t.Run(sh.args[0], func(t *testing.T) {
			needProgram(t, sh.args[0])
			s := startShell(t, 50, 200, nil, sh.args...)
			s.typed(sh.setUp+"; echo DO''NE\n", "DONE")
			for _, line := range typedLines {
				if line.only == "" || line.only == sh.args[0] {
					s.typed(line.keys, line.want+"END")
				}
			}
		})
	}
}

// needProgram skips a test if a program is missing; with CI=true that is a
// failure.
func needProgram(t *testing.T, name string) {
	if _, err := exec.LookPath(name); err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("there is no %s: .ci/deps installs it", name)
	}
	t.Skipf("there is no %s: .ci/deps installs it", name)
}

// TestCompletion verifies that a script is printed for each shell, and for no other.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		status, stdout, stderr := runLine("completion", shell)
		require.Zero(t, status)
		require.Empty(t, stderr)
		require.Contains(t, stdout, completeWord)
	}
	for args, want := range map[string]string{
		"":     "ksnoop: completion needs the name of a shell, as in ksnoop completion bash (ksnoop help completion explains more)\n",
		"fsih": "ksnoop: completion is \"fsih\": did you mean \"fish\"? it must be bash, zsh or fish\n",
	} {
		line := []string{"completion"}
		if args != "" {
			line = append(line, args)
		}
		status, stdout, stderr := runLine(line...)
		require.Equal(t, exit.Usage, status)
		require.Empty(t, stdout)
		require.Equal(t, want, stderr)
	}
}

// completed returns the completions of the last word of a command line.
func completed(t *testing.T, line string) string {
	status, stdout, stderr := runLine(append([]string{completeWord, "--"}, strings.Split(line, " ")...)...)
	require.Zero(t, status)
	require.Empty(t, stderr)
	kind, rest, _ := strings.Cut(stdout, "\n")
	var words []string
	for candidate := range strings.Lines(rest) {
		word, _, _ := strings.Cut(candidate, "\t")
		words = append(words, word)
	}
	return strings.TrimSpace(kind + ": " + strings.Join(words, " | "))
}

// TestCompleteCommands verifies that completion takes commands and options from the
// commands themselves.
func TestCompleteCommands(t *testing.T) {
	all := strings.Join(commandNames(newApp(&environment{})), " | ")
	for line, want := range map[string]string{
		"":                         "words: " + all,
		"li":                       "words: list",
		"--att":                    "words: --attach",
		"--attach=kprobe.":         "words: --attach=kprobe.multi | --attach=kprobe.session",
		"-o ":                      "words: " + strings.Join(render.TraceFormats, " | "),
		"replay -o ":               "words: " + strings.Join(render.TraceFormats, " | "),
		"watch -o ":                "words: " + strings.Join(render.Formats, " | "),
		"dump -o ":                 "words: text | json",
		"doctor -o ":               "words: text | json",
		"doctor ":                  "words:",
		"doctor --s":               "words: --self-test",
		"--time ":                  "words: mono | wall | delta",
		"--color a":                "words: auto | always",
		"--btf ":                   "files:",
		"-f ":                      "files:",
		"test ":                    "files:",
		"test tcp.probes -- mkf":   "command:",
		"check ":                   "files:",
		"--cgroup ":                "directories:",
		"list --kernel-features 6": "words: 6.1 | 6.12 | 6.18",
		"vfs_read -- ls -":         "command:",
		"help sp":                  "words: spec",
		"completion ":              "words: bash | zsh | fish",
		"info --pi":                "words:",
		"--errors ":                "words: text | json",
		"list --errors=":           "words: --errors=text | --errors=json",
		"--keys ":                  "words:",
		"check --kernel-features ": "words: 5.10 | 6.1 | 6.12 | 6.18 | 7.2",
		"test -o j":                "words: junit | json",
	} {
		require.Equal(t, want, completed(t, line), line)
	}
}

// TestChoices verifies that an option accepts the values that its help lists.
func TestChoices(t *testing.T) {
	types := fixture.Write(t)
	for option, line := range map[string]string{"attach": "compile|vfs_read", "kernel-features": "list|vfs_read", "color": "list|vfs_read"} {
		_, choices, _ := strings.Cut(completed(t, strings.Split(line, "|")[0]+" --"+option+" "), ": ")
		require.Greater(t, strings.Count(choices, "|"), 1, option)
		for choice := range strings.SplitSeq(choices, " | ") {
			status, _, stderr := ksnoop(t, types, line+"|--"+option+"="+choice)
			require.Zero(t, status, stderr)
		}
	}
}

// TestOffers verifies that every option of every command accepts what completion offers
// for its value.
func TestOffers(t *testing.T) {
	app := newApp(&environment{})
	names := commandNames(app)
	for _, name := range names {
		for _, f := range append(app.Command(name).VisibleFlags(), app.VisibleFlags()...) {
			if !takesValue(f) {
				continue
			}
			line := name + " --" + f.Names()[0] + " "
			kind, offers, _ := strings.Cut(completed(t, line), ":")
			if v := f.(valued).value; kind == "words" && offers != "" && v.parse != nil {
				for offer := range strings.SplitSeq(offers[1:], " | ") {
					require.NoError(t, v.parse(offer), line+offer)
				}
			}
		}
	}
}

// TestCompleteCommand verifies that the hidden command always succeeds, and prints
// no errors.
func TestCompleteCommand(t *testing.T) {
	types := fixture.Write(t)
	for _, tc := range []struct{ args, want string }{
		{"--|compile|--btf|" + types + "|vfs_read(file->po", "parts\nvfs_read(file->pos\tlong\nvfs_read(file->pos,\tlong\nvfs_read(file->pos)\tlong\n"},
		{"--bash| '|ksnoop list --btf " + types + " vfs_r", "words\nvfs_read\t\n"},
		{"--|compile|--btf|/dev/null|vfs", "parts\n"},
		{"--", "words\ntrace\t"},
		{"", "\n"},
	} {
		status, stdout, stderr := runLine(append([]string{completeWord}, strings.Split(tc.args, "|")...)...)
		require.Zero(t, status)
		require.Empty(t, stderr)
		require.True(t, strings.HasPrefix(stdout, tc.want), stdout)
	}
}

// TestCompleteTypes verifies that types are completed where they are looked up.
func TestCompleteTypes(t *testing.T) {
	types := fixture.Write(t, infoTypes()...)
	for args, want := range map[string]string{
		"info|--btf|" + types + "|struct pa":            "words: struct packet",
		"info|--btf|" + types + "|atomic":               "words: atomic_t",
		"info|--btf|" + types + "|vfs_r":                "words: vfs_read",
		"list|--btf|" + types + "|--takes|struct pack":  "parts: struct packet | struct packet *",
		"list|--btf|" + types + "|--takes=struct pack":  "parts: --takes=struct packet | --takes=struct packet *",
		"list|--btf|" + types + "|--takes|enum m|vfs_r": "words: vfs_read",
		"list|-o|":    "words: text | json",
		"compile|-o|": "words: text | json",
		"info|-o|j":   "words: json",
	} {
		status, stdout, stderr := runLine(append([]string{completeWord, "--"}, strings.Split(args, "|")...)...)
		require.Zero(t, status)
		require.Empty(t, stderr)
		kind, rest, _ := strings.Cut(stdout, "\n")
		var words []string
		for candidate := range strings.Lines(rest) {
			word, _, _ := strings.Cut(candidate, "\t")
			words = append(words, word)
		}
		require.Equal(t, want, kind+": "+strings.Join(words, " | "), args)
	}
}
