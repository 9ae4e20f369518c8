package compiler

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestErrnoName checks that every number has exactly one name that is not an alias.
func TestErrnoName(t *testing.T) {
	names := map[uint64]int{}
	for name, n := range Errnos {
		if !errnoAliases[name] {
			names[n]++
		}
		require.Equal(t, n, Errnos[ErrnoName(n)], name)
	}
	for n, count := range names {
		require.Equal(t, 1, count, n)
	}
	require.Equal(t, "ENETUNREACH", ErrnoName(101))
	require.Equal(t, "EAGAIN", ErrnoName(11))
	require.Empty(t, ErrnoName(0))
	require.Empty(t, ErrnoName(4095))
}
