//go:build linux

package e2e

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/require"
)

// attachBare attaches a program to the entry of a function that only records
// the given number of bytes behind its first argument. No record can cost less.
func attachBare(t *testing.T, fn string, bytes int) (detach func() error) {
	ring, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.RingBuf, MaxEntries: 4 << 20})
	require.NoError(t, err)
	defer ring.Close() // the program keeps a reference
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.Tracing, AttachType: ebpf.AttachTraceFEntry, AttachTo: fn, License: "GPL", Instructions: asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMapPtr(asm.R1, ring.FD()),
		asm.Mov.Imm(asm.R2, int32(bytes)),
		asm.Mov.Imm(asm.R3, 0),
		asm.FnRingbufReserve.Call(),
		asm.JEq.Imm(asm.R0, 0, "exit"),
		asm.Mov.Reg(asm.R7, asm.R0),
		asm.Mov.Reg(asm.R1, asm.R7),
		asm.Mov.Imm(asm.R2, int32(bytes)),
		asm.LoadMem(asm.R3, asm.R6, 0, asm.DWord),
		asm.FnProbeReadKernel.Call(),
		asm.Mov.Reg(asm.R1, asm.R7),
		asm.Mov.Imm(asm.R2, 0),
		asm.FnRingbufSubmit.Call(),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("exit"),
		asm.Return(),
	}})
	require.NoError(t, err)
	defer prog.Close() // the link keeps a reference
	l, err := link.AttachTracing(link.TracingOptions{Program: prog})
	require.NoError(t, err)
	return l.Close
}
