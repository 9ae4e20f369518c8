package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/suite"
)

// TestHelp verifies that help has sections with the options in order, the names of
// their values, and their defaults.
func TestHelp(t *testing.T) {
	status, text, _ := runLine("help", "doctor")
	require.Zero(t, status)
	require.Equal(t, `NAME:
  ksnoop doctor - report what can be traced here, and what is missing

USAGE:
  ksnoop doctor [OPTIONS]

DESCRIPTION:
  Any user can run this. It tries each attach kind on a function that is seldom called. The exit status is 0 if
  at least one kind works, and 1 if none does.

     ksnoop doctor                what this kernel and this user's capabilities allow
     ksnoop doctor --self-test    trace calls of its own by each kind, and compare all values

OPTIONS:
  -o, --output FORMAT   print FORMAT: text, or json for one object (default: text)
      --self-test       trace known calls of ksnoop itself, and compare all values
  -h, --help            show help
`, text)
}

// TestHiddenOptions verifies that info accepts and hides the options of the classic
// ksnoop that it ignores.
func TestHiddenOptions(t *testing.T) {
	_, text, _ := runLine("help", "info")
	require.NotContains(t, text, "--pid")
	require.Contains(t, text, "--file")
	require.True(t, understand(t, "info", "-dp", "1", "vfs_read").Bool("debug"))
}

// TestHelpExample verifies that the probe file in the help is valid.
func TestHelpExample(t *testing.T) {
	_, text, ok := strings.Cut(testCommand(&environment{}).Description, "\n\n")
	require.True(t, ok)
	text, _, _ = strings.Cut(text, "\n\n")
	_, err := suite.Parse("help", strings.ReplaceAll(text, "   ", ""))
	require.NoError(t, err)
}
