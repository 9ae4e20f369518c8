package main

import (
	"os"
	"os/exec"
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
// module in which the line is another is refused.
func TestCopyModule(t *testing.T) {
	t.Chdir("../..")
	require.NoError(t, copyModule())
	source, err := download()
	require.NoError(t, err)
	out, err := exec.Command("diff", "-U0", "--label=a/help.go", "--label=b/help.go", source+"/help.go", copied+"/help.go").Output()
	require.Equal(t, 1, err.(*exec.ExitError).ExitCode())
	patch, err := os.ReadFile(copied + ".patch")
	require.NoError(t, err)
	require.Equal(t, string(out), string(patch))
	out, err = exec.Command("diff", "-r", "--brief", source, copied).Output()
	require.Equal(t, 1, err.(*exec.ExitError).ExitCode())
	for line := range strings.Lines(string(out)) {
		require.True(t, strings.HasPrefix(line, "Only in "+source) || strings.HasSuffix(line, "/help.go differ\n"), line)
	}
	changed, err := os.ReadFile(copied + "/help.go")
	require.NoError(t, err)
	_, _, err = withoutDefault(changed)
	require.EqualError(t, err, `github.com/urfave/cli/v2 has the line "var HelpPrinterCustom helpPrinterCustom = printHelpCustom" 0 times, not once: see how this version of it prints help`)
}
