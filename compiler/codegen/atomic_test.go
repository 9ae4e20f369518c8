package codegen

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/require"
)

// What the kernel gets must be the operation itself, not an addition.
func TestAtomics(t *testing.T) {
	for _, tc := range []struct {
		in   asm.Instruction
		want []byte
	}{
		{compareExchange(asm.R4, asm.R2, 0), []byte{0xdb, 0x24, 0, 0, 0xf1, 0, 0, 0}},
		{compareExchange(asm.R7, asm.R1, 8), []byte{0xdb, 0x17, 8, 0, 0xf1, 0, 0, 0}},
		{exchange(asm.R7, asm.R1, 0), []byte{0xdb, 0x17, 0, 0, 0xe1, 0, 0, 0}},
		{exchange(asm.R8, asm.R3, 16), []byte{0xdb, 0x38, 16, 0, 0xe1, 0, 0, 0}},
		{fetchAdd(asm.R7, asm.R1, 8), []byte{0xdb, 0x17, 8, 0, 1, 0, 0, 0}},
		{asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, 8), []byte{0xdb, 0x10, 8, 0, 0, 0, 0, 0}},
	} {
		var b bytes.Buffer
		require.NoError(t, asm.Instructions{tc.in}.Marshal(&b, binary.LittleEndian))
		require.Equal(t, tc.want, b.Bytes(), "%v", tc.in)
	}
}
