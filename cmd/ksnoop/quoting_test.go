package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/fixture"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
)

// TestLostQuotes covers what a shell leaves of specs without quotes, and the file
// that stdout then is. What is wrong with the rest is still said.
func TestLostQuotes(t *testing.T) {
	const cure = "put each spec in single quotes, as in ksnoop 'vfs_read(count > 100, return)'\n"
	const missing = "ksnoop: ')' is missing\n  vfs_read(count\n                ^\n  close the list of values with ')'\n"
	const unknown = "ksnoop: there is no function cuont in this kernel\n  cuont\n  ^^^^^\n"
	types := fixture.Write(t)
	for _, tc := range []struct {
		words, file, want string
		cut               bool // whether a hint about the file follows, and the end
	}{
		// ksnoop vfs_read count > 100
		{"vfs_read|cuont", "100", unknown, true},
		// ksnoop vfs_read count >= 100
		{"vfs_read|cuont|100", "=", "ksnoop: a function name cannot begin with a digit\n  100\n  ^^^\n", true},
		// ksnoop vfs_read file->flags > 100
		{"vfs_read|file-", "100", "ksnoop: expected '(', not '-'\n  file-\n      ^\n", true},
		// ksnoop vfs_read file->flags
		{"vfs_read|file-", "flags", "ksnoop: expected '(', not '-'\n  file-\n      ^\n", true},
		// ksnoop vfs_read\(count > 100\)
		{"vfs_read(count", "100)", missing, true},
		{"vfs_read(count,|return)", "", "ksnoop: the shell has split 'vfs_read(count, return)' at its blanks: " + cure, false},
		{"vfs_open|vfs_read(count|<|3|)", "", "ksnoop: the shell has split 'vfs_read(count < 3 )' at its blanks: " + cure, false},
		{"vfs_read|(count)", "", "ksnoop: the shell has split 'vfs_read (count)' at its blanks: " + cure, false},
		{"vfs_read(return|==|-EINTR)", "", "ksnoop: the shell has split 'vfs_read(return == -EINTR)' at its blanks: " + cure, false},
		{"vfs_read(return|==|-EINTR)", "out", "ksnoop: the shell has split 'vfs_read(return == -EINTR)' at its blanks: " + cure, false},
		{"vfs_read|if|count", "", "ksnoop: the shell has split 'vfs_read if count' at its blanks: " + cure, false},
		{"$task->mm|(int)@jiffies", "", "ksnoop: expected a function name, not '$'\n", false},
		{"vfs_read(cuont)|(count)", "", "ksnoop: expected a function name, not '('\n", false},
		{"vfs_read|(count|x)", "", "ksnoop: expected a function name, not '('\n", false},
		{"vfs_read(count|x)", "", missing, false},
		{"vfs_open|vfs_read(cuont)|if|count|vfs_open", "", "ksnoop: the shell has split 'vfs_read(cuont) if count' at its blanks: " + cure, false},
		{"vfs_read(cuont)", "out", "ksnoop: vfs_read has no argument 'cuont'\n", false},
		{"vfs_read(count", "", missing, false},
		{"vfs_read(count", "out", missing, true},
		// ksnoop 'vfs_read(count' > 4096
		{"vfs_read(count", "4096", missing, true},
		{"vfs_read(count", "=", missing, true},
		{"vfs_raed|vfs_read(count", "out", missing, true},
		{"vfs_read(count)", "100", "", false},
		// in quotes, or complete: the shell has taken nothing
		{"vfs_read(cuont)", "20261129", "ksnoop: vfs_read has no argument 'cuont'\n  vfs_read(cuont)\n           ^^^^^\n  did you mean 'count'?\n", false},
		{"vfs_read(count > 5", "out", "ksnoop: ')' is missing\n  vfs_read(count > 5\n                    ^\n  close the list of values with ')'\n", false},
		{"vfs_read(count =< 5", "out", "ksnoop: '=<' is not a comparison\n", false},
		{`vfs_read($comm == "a(", cuont)`, "out", "ksnoop: vfs_read has no argument 'cuont'\n", false},
		{`vfs_read($comm=="\"(",cuont)`, "out", "ksnoop: vfs_read has no argument 'cuont'\n", false},
		{"vfs_read(count == '(', x y)", "out", "ksnoop: expected ',' or ')', not 'y'\n", false},
		{`p vfs_read n="(" x=%rdi`, "out", "ksnoop: a string without '\\' before it\n", false},
		{`vfs_read($comm == "a(", cuont)|vfs_open)`, "out", "ksnoop: ", false},
		{"vfs_raed", "7", "ksnoop: there is no function vfs_raed in this kernel\n", false},
		{"tcp_[a-", "out", "ksnoop: the '[' has no closing ']'\n  tcp_[a-\n      ^\n", false},
		{"vfs_read|count|-n|x", "7", "ksnoop: compile has no option -n: ", false},
	} {
		var out bytes.Buffer
		status := runInto(t, tc.file, &out, append([]string{"compile", "--btf", types}, strings.Split(tc.words, "|")...)...)
		require.True(t, strings.HasPrefix(out.String(), tc.want) && (tc.want == "") == (status == 0), "%s: %s", tc.words, out.String())
		hint := fmt.Sprintf("  stdout is the file %s: if '> %[1]s' was meant as a part of the spec, the shell took it for a redirection: %s", tc.file, cure)
		switch {
		case tc.cut:
			require.Equal(t, tc.want+hint, out.String())
			require.Equal(t, exit.Usage, status)
		case strings.HasSuffix(tc.want, cure):
			require.Equal(t, tc.want, out.String())
		default:
			require.NotContains(t, out.String(), "the shell")
		}
	}
}

// TestOtherWords verifies that the errors of commands that take no specs are not
// explained by quotes, whatever the file is that stdout is redirected to.
func TestOtherWords(t *testing.T) {
	types := fixture.Write(t)
	for line, want := range map[string]string{
		"-n|x|vfs_read":                    "ksnoop: --events is \"x\": it must be a number from 1 to 4611686018427387904\n",
		"test|/nope":                       "ksnoop: read specs: open /nope: no such file or directory\n",
		"dump|--btf|TYPES|nosuch":          "ksnoop: there is no type \"nosuch\"\n",
		"dump|vfs_read|if":                 "ksnoop: dump takes one type, not 2: quote its name, as in 'struct file'\n",
		"info|--btf|TYPES|vfs_raed":        "ksnoop: there is no function vfs_raed in this kernel\n  vfs_raed\n  ^^^^^^^^\n  did you mean 'vfs_read'?\n",
		"info|--btf|TYPES|struct fil":      "ksnoop: there is no type \"struct fil\": did you mean \"struct file\"?\n",
		"list|--btf|TYPES|tcp_[a-":         "ksnoop: the '[' has no closing ']'\n  tcp_[a-\n      ^\n",
		"list|--btf|TYPES|vfs_read|nosuch": "ksnoop: there is no function nosuch in this kernel\n  nosuch\n  ^^^^^^\n",
		"replay|/nope":                     "ksnoop: read the recording: open /nope: no such file or directory\n",
		"replay|":                          "ksnoop: the name of the recording is empty: as in ksnoop replay FILE\n",
	} {
		for _, file := range []string{"7", "=", "out.log"} {
			var out bytes.Buffer
			require.NotZero(t, runInto(t, file, &out, strings.Split(strings.ReplaceAll(line, "TYPES", types), "|")...))
			require.Equal(t, want, out.String(), line)
		}
	}
}

// TestLostQuotesJSON verifies that the hint about a redirection leaves the place of an
// error in its spec.
func TestLostQuotesJSON(t *testing.T) {
	var out bytes.Buffer
	require.Equal(t, exit.Usage, runInto(t, "out", &out, "--errors", "json", "vfs_read(count"))
	require.Equal(t, `{"type":"error","version":1,"status":2,"message":"')' is missing",`+
		`"hint":"close the list of values with ')'\nstdout is the file out: if '> out' was meant as a part of the spec, the shell took it for a redirection: `+
		`put each spec in single quotes, as in ksnoop 'vfs_read(count > 100, return)'","spec":"vfs_read(count","start":14,"end":14}`+"\n", out.String())
}

// runInto runs a command line with a file as stdout, or without a file if name is "".
func runInto(t *testing.T, name string, stderr *bytes.Buffer, args ...string) int {
	args = append([]string{"ksnoop"}, args...)
	if name == "" {
		return ksnoopStatus(args, strings.NewReader(""), new(bytes.Buffer), stderr)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), name))
	require.NoError(t, err)
	defer file.Close()
	return ksnoopStatus(args, strings.NewReader(""), term.NewStdout(file), stderr)
}

// TestWarnRedirect verifies that only a file whose name is like a constant gives a
// warning.
func TestWarnRedirect(t *testing.T) {
	for name, want := range map[string]string{
		"4096": "ksnoop: events go to the file 4096: if '> 4096' was meant as a condition, put the spec in single quotes\n",
		"=":    "ksnoop: events go to the file =: if '> =' was meant as a condition, put the spec in single quotes\n",
		"0x10": "ksnoop: events go to the file 0x10: if '> 0x10' was meant as a condition, put the spec in single quotes\n",
		"out":  "", "reads.txt": "", "2026-11-21": "",
	} {
		file, err := os.Create(filepath.Join(t.TempDir(), name))
		require.NoError(t, err)
		var stderr bytes.Buffer
		target.WarnRedirect(term.NewPlain(term.NewStdout(file)), &stderr)
		require.Equal(t, want, stderr.String(), name)
		file.Close()
	}
}
