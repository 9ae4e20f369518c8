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
)

// TestSpecFiles verifies that files are read in order, one after the other, before
// the specs of the command line.
func TestSpecFiles(t *testing.T) {
	types := fixture.Write(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	first := write("first", "# comment\n\nf:a vfs_read count # one\r\nvfs_open(path)\nf:b vfs_read file\n")
	second := write("second", "-:b\nf:a vfs_open file\n\n")
	for _, tc := range []struct {
		line, stdin, want string
	}{
		{"-f " + first, "", "vfs_read vfs_open vfs_read"},
		{"--file=" + first + " vfs_open(file)", "", "vfs_read vfs_open vfs_read vfs_open"},
		{"vfs_read(count) -f " + first + " -f " + second, "", "vfs_open vfs_open vfs_read"},
		{"-f - vfs_read(count)", "vfs_open(file)\n", "vfs_open vfs_read"},
		{"-f- --file " + first, "f:c vfs_open\n", "vfs_open vfs_read vfs_open vfs_read"},
		{"-f -", "\ufefff:c vfs_open\n", "vfs_open"},
		{"-s -f -", "vfs_open(file)\nvfs_read(count)\n", "vfs_open vfs_read"},
	} {
		var stdout, stderr bytes.Buffer
		args := append([]string{"ksnoop", "compile", "--btf", types}, strings.Fields(tc.line)...)
		require.Zero(t, ksnoopStatus(args, strings.NewReader(tc.stdin), &stdout, &stderr), "%s: %s", tc.line, &stderr)
		require.Equal(t, tc.want, compiled(stdout.String()), tc.line)
	}
}

// compiled returns the functions in the output of compile, one for each spec.
func compiled(text string) string {
	functions, _, _ := strings.Cut(text, ":")
	return strings.ReplaceAll(functions, ",", "")
}

// TestSpecFileErrors verifies that errors in files name the file, the line and the
// column, and that errors of the command line do not.
func TestSpecFileErrors(t *testing.T) {
	types := fixture.Write(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bad"), []byte("f:a vfs_read $ar\nvfs_read(count = 1)\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "empty"), []byte("# nothing\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "removed"), []byte("f:a vfs_read\n-:a\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "probes"), []byte("ksnoop-probes 1\nsuite x\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "commented"), []byte("\ufeff# SPDX-License-Identifier: GPL-2.0\n\nksnoop-probes 1 # or 2\n"), 0o644))
	t.Chdir(dir)
	for line, want := range map[string]string{
		"-f bad vfs_read(": `ksnoop: bad:1:14: '$ar' is not known
  f:a vfs_read $ar
               ^^^
  did you mean '$arg*'?
ksnoop: bad:2:16: '=' is not a comparison
  vfs_read(count = 1)
                 ^
  did you mean '=='?
ksnoop: ')' is missing
  vfs_read(
           ^
  close the list of values with ')'
`,
		"-f empty":             "ksnoop: there is nothing in empty: each line is empty, a comment or removed\n",
		"-f empty -f empty":    "ksnoop: there is nothing in empty, empty: each line is empty, a comment or removed\n",
		"-f removed":           "ksnoop: there is nothing in removed: each line is empty, a comment or removed\n",
		"-f probes":            "ksnoop: probes is a probe file, not a file of specs: write ksnoop test probes or ksnoop check probes\n",
		"-f commented":         "ksnoop: commented is a probe file, not a file of specs: write ksnoop test commented or ksnoop check commented\n",
		"-f -":                 "ksnoop: standard input is a probe file, not a file of specs: write ksnoop test -\n",
		"-f none":              "ksnoop: read specs: open none: no such file or directory\n",
		"-f .":                 "ksnoop: read specs: read .: is a directory\n",
		"-f":                   "ksnoop: --file names no file: as in ksnoop -f probes.txt\n",
		"--file=":              "ksnoop: --file names no file: as in ksnoop -f probes.txt\n",
		"-f /dev/zero":         "ksnoop: read specs: read /dev/zero: there are more than 16 MB\n",
		"-f - -f -":            "ksnoop: --file - is given twice, and standard input can be read once\n",
		"-f - vfs_read(count)": "ksnoop: standard input:1:3: no earlier line has the event 'x'\n  -:x\n    ^\n",
	} {
		var stdout, stderr bytes.Buffer
		args := append([]string{"ksnoop", "compile", "--btf", types}, strings.Fields(line)...)
		stdin := "-:x"
		switch line {
		case "-f - -f -":
			stdin = "vfs_read"
		case "-f -":
			stdin = "ksnoop-probes 1\n"
		}
		require.Equal(t, exit.Usage, ksnoopStatus(args, strings.NewReader(stdin), &stdout, &stderr), line)
		require.Equal(t, want, stderr.String(), line)
	}
}

// FuzzSpecFile verifies that any bytes as a file of specs give an error or an answer,
// in little time.
func FuzzSpecFile(f *testing.F) {
	raw := fixture.Types(f)
	f.Add("# x\nf:a vfs_read $arg* if count > 1\n-:a\nvfs_open(path)\n", uint8(0))
	f.Add("t tick $arg1:x8\nvfs_*(file)\nf:b vfs_open%return $retval file->flags:b3@1/8", uint8(1))
	f.Add("-:\x1b\nf vfs_read \xff", uint8(1))
	f.Fuzz(func(t *testing.T, text string, command uint8) {
		withWords(t, raw, []string{[]string{"compile", "info"}[command%2], "-f", "-"}, text)
	})
}

// TestFilesAreSpared verifies that no option writes to a file that the command reads.
func TestFilesAreSpared(t *testing.T) {
	types := fixture.Write(t)
	t.Chdir(t.TempDir())
	files := map[string]string{
		"specs": "vfs_read(count)\n", "tcp.p": "ksnoop-probes 1\nsuite x\nassert a vfs_read() never\n", "map": "ffffffff81000100 T vfs_read\n", "vfs_read": "{}\n",
	}
	for name, text := range files {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
	require.NoError(t, os.Symlink("specs", "link"))
	for _, tc := range []struct{ line, option, name string }{
		{"test tcp.p -o json=tcp.p -- true", "output", "tcp.p"},
		{"test tcp.p -o ktap -o junit=./tcp.p -- true", "output", "./tcp.p"},
		{"test tcp.p --prom-textfile tcp.p -- true", "prom-textfile", "tcp.p"},
		{"test tcp.p --ready-file tcp.p -- true", "ready-file", "tcp.p"},
		{"check --btf " + types + " -o tap=" + types + " vfs_read", "output", types},
		{"check --btf " + types + " -o tap=tcp.p tcp.p", "output", "tcp.p"},
		{"check --btf " + types + " --symbols map -o tap=map vfs_read", "output", "map"},
		{"-f specs --record specs", "record", "specs"},
		{"record -f link -w specs", "write", "specs"},
		{"record -f specs -w x --ready-file link", "ready-file", "link"},
	} {
		var stdout, stderr bytes.Buffer
		status := ksnoopStatus(append([]string{"ksnoop"}, strings.Fields(tc.line)...), strings.NewReader(""), &stdout, &stderr)
		require.Equal(t, exit.Usage, status, tc.line)
		require.Equal(t, "ksnoop: --"+tc.option+" would replace "+tc.name+", which is read: name another file\n", stderr.String(), tc.line)
	}
	for name, text := range files {
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, text, string(got), name)
	}

	// A spec may have the name of a file.
	var stdout, stderr bytes.Buffer
	require.Zero(t, ksnoopStatus([]string{"ksnoop", "check", "--btf", types, "-o", "json=vfs_read", "vfs_read"}, strings.NewReader(""), &stdout, &stderr), &stderr)
}
