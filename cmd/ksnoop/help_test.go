package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Help is in sections; options stand in the order of their concerns, with what
// their values are called, and what they are unless they are given.
func TestHelp(t *testing.T) {
	status, text, _ := runLine("help", "doctor")
	require.Zero(t, status)
	require.Equal(t, `NAME:
  ksnoop doctor - say what can be traced here, and what is missing

USAGE:
  ksnoop doctor [OPTIONS]

DESCRIPTION:
  Any user may do this. What can be tried is tried, on functions that are seldom called. The status is 0 if
  there is one way to trace or more, and 1 if there is none.

     ksnoop doctor                what this kernel and this user's capabilities allow
     ksnoop doctor --self-test    trace calls of its own in each way, and compare all values

OPTIONS:
  -o, --output FORMAT   print FORMAT: text, or json for one object (default: text)
      --self-test       trace known calls of ksnoop's own and compare what is shown
  -h, --help            show help
`, text)
}

// The options of the classic ksnoop that mean nothing to info are accepted, and not
// shown.
func TestHiddenOptions(t *testing.T) {
	_, text, _ := runLine("help", "info")
	require.NotContains(t, text, "--pid")
	require.Contains(t, text, "--file")
	require.True(t, invoke(t, "info", "-dp", "1", "vfs_read").Bool("debug"))
}
