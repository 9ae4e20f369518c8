package runtime

import (
	"testing"

	"github.com/stretchr/testify/require"
)

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
