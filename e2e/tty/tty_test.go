//go:build linux

package tty

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTTY verifies that a command has a terminal, and gets SIGINT when it has shown a
// text.
func TestTTY(t *testing.T) {
	if _, err := os.Stat("/dev/pts/ptmx"); err != nil {
		t.Skip("needs devpts")
	}
	var out strings.Builder
	status, err := run([]string{"-columns", "77", "sh", "-c", "test -t 0 && test -t 1 && test -t 2 && stty size; exit 3"}, &out)
	require.NoError(t, err)
	require.Equal(t, "24 77\n", out.String())
	require.Equal(t, 3, status)

	out.Reset()
	status, err = run([]string{"-interrupt", "ready", "sh", "-c", "trap 'echo stopped; exit 4' INT; echo ready; while :; do sleep 0.1; done"}, &out)
	require.NoError(t, err)
	require.Regexp(t, `^ready\n(\^C)?stopped\n$`, out.String())
	require.Equal(t, 4, status)

	_, err = run([]string{"./no-such-program"}, &out)
	require.Error(t, err)
}
