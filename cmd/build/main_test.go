package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCold verifies that the tests have the same flags, so that nothing is compiled twice.
func TestCold(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	flags := "\nexport GOFLAGS += -trimpath"
	for _, name := range cold {
		flags += " -gcflags=" + name + "=-l"
	}
	require.Contains(t, string(makefile), flags+"\n")
}

// TestCopyModule verifies that the copy has one line that differs from the module, and
// that a module in which this line is another is refused.
func TestCopyModule(t *testing.T) {
	t.Chdir("../..")
	require.NoError(t, copyModule())
	dir, err := download()
	require.NoError(t, err)
	before, err := os.ReadFile(dir + "/help.go")
	require.NoError(t, err)
	after, err := os.ReadFile(copied + "/help.go")
	require.NoError(t, err)
	require.Equal(t, len(before)-len(" = printHelpCustom"), len(after))
	want, err := withoutDefault(before)
	require.NoError(t, err)
	require.Equal(t, string(want), string(after))
	_, err = withoutDefault(after)
	require.ErrorContains(t, err, `github.com/urfave/cli/v2 has "var HelpPrinterCustom helpPrinterCustom = printHelpCustom" 0 times, not once`)
}
