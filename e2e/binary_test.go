//go:build linux

package e2e

import (
	"debug/elf"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/e2e/vm"
)

// TestBinary checks that the binary is static and small, so that it can be
// copied anywhere.
func TestBinary(t *testing.T) {
	path := built(t, builtKsnoop, vm.AMD64)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.LessOrEqual(t, info.Size(), int64(9_000_000))
	f, err := elf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	libraries, err := f.ImportedLibraries()
	require.NoError(t, err)
	require.Empty(t, libraries)
	require.True(t, isStatic(path), "it asks for a dynamic linker")
}
