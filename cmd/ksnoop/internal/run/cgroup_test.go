package run

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRemoved verifies that a cgroup that was removed is not confused with one that was
// made again with its name.
func TestRemoved(t *testing.T) {
	name := t.TempDir() + "/group"
	create := func() {
		require.NoError(t, os.Mkdir(name, 0o700))
		require.NoError(t, os.WriteFile(name+"/cgroup.procs", nil, 0o600))
	}
	create()
	dir, err := os.Open(name)
	require.NoError(t, err)
	defer dir.Close()
	require.False(t, removed(dir))
	require.NoError(t, os.RemoveAll(name))
	require.True(t, removed(dir))
	create()
	require.True(t, removed(dir))
}
