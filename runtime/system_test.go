package runtime

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestThisSystem verifies that the system is the one that uname and procfs describe.
func TestThisSystem(t *testing.T) {
	s, err := ThisSystem()
	require.NoError(t, err)
	release, err := Release()
	require.NoError(t, err)
	require.Equal(t, release, s.Kernel)
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Equal(t, host, s.Host)
	require.Regexp(t, "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", s.Boot)
}
