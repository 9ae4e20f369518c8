package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// Keys that are typed in a shell, and the arguments that ksnoop gets then.
var typedLines = []struct {
	keys, want string
	bash       bool // with parentheses that other shells would obey
}{
	{keys: "ksnoop compile --btf btf 'vfs_read(fi\t->fl\t,re\t)'\n", want: "<compile><--btf><btf><vfs_read(file->flags,return)>"},
	{keys: "ksnoop compile --btf btf 'vfs_read(count, fi\t->po\t > 3)'\n", want: "<compile><--btf><btf><vfs_read(count, file->pos > 3)>"},
	{keys: "ksnoop compile --btf btf \"vfs_o\t(pa\t:str\t)\"\n", want: "<compile><--btf><btf><vfs_open(path:string)>"},
	{keys: "ksnoop compile --btf btf vfs_re\t x\n", want: "<compile><--btf><btf><vfs_read><x>"},
	{keys: "ksnoop compile --btf btf tp:ti\t x\n", want: "<compile><--btf><btf><tp:tick><x>"},
	{keys: "ksnoop compile --btf btf vfs_read\\(file-\\>fl\t\\)\n", want: "<compile><--btf><btf><vfs_read(file->flags)>"},
	{keys: "ksnoop compile --btf btf vfs_read\tfile)'\n", want: "<compile><--btf><btf><vfs_read(file)>", bash: true},
	{keys: "ksnoop list --kernel-f\t6.1\n", want: "<list><--kernel-features><6.1>"},
	{keys: "ksnoop doc\t--se\tx\n", want: "<doctor><--self-test><x>"},
	{keys: "ksnoop compile --attach=kprobe.m\tx\n", want: "<compile><--attach=kprobe.multi><x>"},
	{keys: "ksnoop compile --btf b\tx\n", want: "<compile><--btf><btf><x>"},
	{keys: "ksnoop vfs_read -- mkfif\tx\n", want: "<vfs_read><--><mkfifo><x>"},
}

// The scripts complete what is typed in the real shells. make test installs those
// that are missing, where it can; elsewhere they are left out.
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
				if !line.bash || sh.args[0] == "bash" {
					s.typed(line.keys, line.want+"END")
				}
			}
		})
	}
}

// needProgram skips a test without a program; with CI=true its absence is a
// failure.
func needProgram(t *testing.T, name string) {
	if _, err := exec.LookPath(name); err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("there is no %s: make deps installs it", name)
	}
	t.Skipf("there is no %s: make deps installs it", name)
}

// A script is printed for each shell, and for no other.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		status, stdout, stderr := runLine("completion", shell)
		require.Zero(t, status)
		require.Empty(t, stderr)
		require.Contains(t, stdout, completeWord)
	}
	for args, want := range map[string]string{
		"":     "ksnoop: completion is for a shell: name it, as in ksnoop completion bash (ksnoop help completion explains more)\n",
		"fsih": "ksnoop: completion is \"fsih\": did you mean \"fish\"? it must be bash, zsh or fish\n",
	} {
		line := []string{"completion"}
		if args != "" {
			line = append(line, args)
		}
		status, stdout, stderr := runLine(line...)
		require.Equal(t, exitUsage, status)
		require.Empty(t, stdout)
		require.Equal(t, want, stderr)
	}
}
