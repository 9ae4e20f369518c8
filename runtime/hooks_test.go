package runtime

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHookList(t *testing.T) {
	h := hookList{reach: 4}
	require.False(t, h.has(0x1000))
	for _, hook := range []uint64{0x1000, 0x1010, 0x2004, 0x9000, 0x8000, 0x8010, 0x9008} { // of the kernel, and of two modules
		h.add(hook)
	}
	require.Len(t, h.runs, 2)
	for addr, want := range map[uint64]bool{
		0xfff: true, 0x1000: true, 0x1001: false, 0x1010: true, 0x1011: false, 0x2000: true, 0x1fff: false,
		0x2005: false, 0x9000: true, 0x9008: true, 0x9009: false, 0x8000: true, 0x8010: true, 0: false, ^uint64(0): false,
	} {
		require.Equal(t, want, h.has(addr), "%#x", addr)
	}
}
