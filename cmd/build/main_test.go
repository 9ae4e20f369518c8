package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCold verifies that the tests have the same flags, so that nothing is compiled twice.
func TestCold(t *testing.T) {
	flags := strings.Join(inlining(), " ")
	for name, variable := range map[string]string{"Makefile": "\nexport GOFLAGS += ", ".github/workflows/ci.yml": "\n      GOFLAGS: "} {
		text, err := os.ReadFile("../../" + name)
		require.NoError(t, err)
		require.Contains(t, string(text), variable+"-trimpath "+flags+"\n", name)
	}
}

// TestUnknownProgram verifies that nothing is built under a name that is not that of a program.
func TestUnknownProgram(t *testing.T) {
	require.EqualError(t, target{program: "kernsnoop"}.build(), `there is no program "kernsnoop": build ksnoop or ksnoop-exporter`)
}

// TestCopyModule verifies that the copy differs from the module by the patch, and that a
// module in which something else stands there is refused.
func TestCopyModule(t *testing.T) {
	t.Chdir("../..")
	require.NoError(t, copyModule())
	source, err := download()
	require.NoError(t, err)
	dir := t.TempDir()
	for _, c := range changes {
		text, err := os.ReadFile(filepath.Join(source, c.file))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, c.file), text, 0o644))
	}
	patch, err := filepath.Abs(copied + ".patch")
	require.NoError(t, err)
	apply := exec.Command("git", "apply", "--unidiff-zero", patch)
	apply.Dir = dir
	out, err := apply.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, c := range changes {
		patched, err := os.ReadFile(filepath.Join(dir, c.file))
		require.NoError(t, err)
		text, err := os.ReadFile(filepath.Join(copied, c.file))
		require.NoError(t, err)
		require.Equal(t, string(text), string(patched))
	}
	out, err = exec.Command("diff", "-r", "--brief", source, copied).Output()
	require.Equal(t, 1, err.(*exec.ExitError).ExitCode())
	for line := range strings.Lines(string(out)) {
		require.True(t, strings.HasPrefix(line, "Only in "+source) || strings.HasSuffix(line, "/help.go differ\n") || strings.HasSuffix(line, "/fish.go differ\n"), line)
	}
	for _, c := range changes[1:] {
		changed, err := os.ReadFile(copied + "/" + c.file)
		require.NoError(t, err)
		_, _, err = c.apply(string(changed))
		require.EqualError(t, err, fmt.Sprintf("%s of github.com/urfave/cli/v2 has %q 0 times, not once: see how this version of it prints help", c.file, c.from))
	}
}
