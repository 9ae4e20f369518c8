//go:build linux

package e2e

import (
	"debug/elf"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// The binary is static and small, so that it can be copied anywhere.
func TestBinary(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	require.Contains(t, string(makefile), "COLD := "+cold+"\n", "it is the same binary")
	path := built(t, builtKsnoop)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.LessOrEqual(t, info.Size(), int64(7_000_000))
	f, err := elf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	libraries, err := f.ImportedLibraries()
	require.NoError(t, err)
	require.Empty(t, libraries)
	for _, p := range f.Progs {
		require.NotEqual(t, elf.PT_INTERP, p.Type, "it asks for a dynamic linker")
	}
}
