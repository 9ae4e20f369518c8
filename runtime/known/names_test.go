package known

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNames verifies that names are remembered up to a number and a size of their texts.
func TestNames(t *testing.T) {
	var n Names[int, string]
	_, ok := n.Of(1)
	require.False(t, ok)
	require.True(t, n.Add(1, "one", 3))
	require.False(t, n.Add(1, "one", 3))
	require.True(t, n.Add(1, "eins", 4), "another name of the same")
	name, ok := n.Of(1)
	require.True(t, ok)
	require.Equal(t, "eins", name)

	require.True(t, n.Add(2, "long", MostTexts-7))
	_, ok = n.Of(1)
	require.True(t, ok)
	require.True(t, n.Add(3, "x", 1))
	_, ok = n.Of(1)
	require.False(t, ok, "the texts have become too large")
	for i := range most {
		n.Add(i, "", 0)
	}
	require.Len(t, n.known, most)
	n.Add(most, "", 0)
	require.Len(t, n.known, 1)
	require.Equal(t, 2, n.Cleared)
}
