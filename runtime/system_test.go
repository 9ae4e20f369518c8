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

func TestParseCPUs(t *testing.T) {
	for list, want := range map[string][]int{"0": {0}, "0-3,8": {0, 1, 2, 3, 8}, "5,1": {5, 1}, "65535": {65535}} {
		cpus, err := ParseCPUs(list)
		require.NoError(t, err)
		require.Equal(t, want, cpus)
	}
	for _, list := range []string{"", "a", "1-", "-1", "3-1", "0,,1", "65536", "0-4294967296", " 1"} {
		_, err := ParseCPUs(list)
		require.Error(t, err, list)
	}
	online, err := OnlineCPUs()
	require.NoError(t, err)
	possible, err := PossibleCPUs()
	require.NoError(t, err)
	require.Subset(t, possible, online)
}
