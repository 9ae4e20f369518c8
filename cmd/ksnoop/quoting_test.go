package main

import (
	"bytes"
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
// that stdout then is.
func TestLostQuotes(t *testing.T) {
	const cure = "put each spec in single quotes, as in ksnoop 'vfs_read(count > 100, return)'\n"
	types := fixture.Write(t)
	for _, tc := range []struct{ words, file, want string }{
		// ksnoop vfs_read count > 100
		{"vfs_read|cuont", "100", "ksnoop: stdout is the file 100: if '> 100' was meant as a condition, the shell took it for a redirection: " + cure},
		// ksnoop vfs_read count >= 100
		{"vfs_read|cuont|100", "=", "ksnoop: stdout is the file =: if '> =' was meant as a condition, the shell took it for a redirection: " + cure},
		// ksnoop vfs_read file->flags > 100
		{"vfs_read|file-", "100", "ksnoop: 'file-' is the beginning of a spec, and stdout is the file 100: the shell took '>' for a redirection: " + cure},
		// ksnoop vfs_read file->flags
		{"vfs_read|file-", "flags", "ksnoop: 'file-' is the beginning of a spec, and stdout is the file flags: the shell took '>' for a redirection: " + cure},
		// ksnoop vfs_read\(count > 100\)
		{"vfs_read(count", "100)", "ksnoop: 'vfs_read(count' is the beginning of a spec, and stdout is the file 100): the shell took '>' for a redirection: " + cure},
		{"vfs_read(count,|return)", "", "ksnoop: the shell has split 'vfs_read(count, return)' at its blanks: " + cure},
		{"vfs_open|vfs_read(count|<|3|)", "", "ksnoop: the shell has split 'vfs_read(count < 3 )' at its blanks: " + cure},
		{"vfs_read|(count)", "", "ksnoop: the shell has split 'vfs_read (count)' at its blanks: " + cure},
		{"vfs_read(return|==|-EINTR)", "", "ksnoop: the shell has split 'vfs_read(return == -EINTR)' at its blanks: " + cure},
		{"vfs_read|if|count", "", "ksnoop: the shell has split 'vfs_read if count' at its blanks: " + cure},
		{"$task->mm|(int)@jiffies", "", "ksnoop: expected a function name, not '$'\n"},
		{"vfs_read(cuont)|(count)", "", "ksnoop: expected a function name, not '('\n"},
		{"vfs_read(cuont)", "out", "ksnoop: vfs_read has no argument 'cuont'\n"},
		{"vfs_read(count", "", "ksnoop: ')' is missing\n"},
		{"vfs_read(count", "out", "ksnoop: 'vfs_read(count' lacks its ')', and stdout is the file out: close the parenthesis, or if '> out' was meant as a condition, " + cure},
		// ksnoop 'vfs_read(count' > 4096
		{"vfs_read(count", "4096", "ksnoop: 'vfs_read(count' lacks its ')', and stdout is the file 4096: close the parenthesis, or if '> 4096' was meant as a condition, " + cure},
		{"vfs_read(count", "=", "ksnoop: 'vfs_read(count' lacks its ')', and stdout is the file =: close the parenthesis, or if '> =' was meant as a condition, " + cure},
		{"vfs_read(count)", "100", ""},
	} {
		var out bytes.Buffer
		status := runInto(t, tc.file, &out, append([]string{"compile", "--btf", types}, strings.Split(tc.words, "|")...)...)
		require.True(t, strings.HasPrefix(out.String(), tc.want) && (tc.want == "") == (status == 0), "%s: %s", tc.words, out.String())
		if strings.HasSuffix(tc.want, cure) {
			require.Equal(t, tc.want, out.String())
			require.Equal(t, exit.Usage, status)
		}
	}
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
