package listing

import (
	"strings"
	"testing"

	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/require"
)

func TestInstructionText(t *testing.T) {
	for _, tc := range []struct {
		in   asm.Instruction
		want string
	}{
		{asm.Mov.Reg(asm.R6, asm.R1), "r6 = r1"},
		{asm.Mov.Reg32(asm.R1, asm.R0), "w1 = w0"},
		{asm.Mov.Imm(asm.R0, -1), "r0 = -1"},
		{asm.Add.Imm(asm.R2, -24), "r2 += -24"},
		{asm.ArSh.Imm(asm.R1, 32), "r1 s>>= 32"},
		{asm.Neg.Imm(asm.R5, 0), "r5 = -r5"},
		{asm.HostTo(asm.BE, asm.R1, asm.Half), "r1 = be16 r1"},
		{asm.LoadImm(asm.R2, 100, asm.DWord), "r2 = 100"},
		{asm.LoadImm(asm.R2, -1<<40, asm.DWord), "r2 = 0xffffff0000000000"},
		{asm.LoadMapPtr(asm.R1, 0).WithReference("events"), "r1 = map events"},
		{asm.LoadMem(asm.R1, asm.R6, 16, asm.Word), "r1 = *(u32 *)(r6 + 16)"},
		{asm.StoreMem(asm.RFP, -8, asm.R0, asm.DWord), "*(u64 *)(r10 - 8) = r0"},
		{asm.StoreImm(asm.R7, 0, 3, asm.Byte), "*(u8 *)(r7 + 0) = 3"},
		{asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, 8), "lock *(u64 *)(r0 + 8) += r1"},
		{asm.CmpXchg.Mem(asm.R7, asm.R1, asm.DWord, 0), "lock if *(u64 *)(r7 + 0) == r0 then = r1; r0 = the old value"},
		{asm.Xchg.Mem(asm.R7, asm.R1, asm.DWord, 0), "lock swap *(u64 *)(r7 + 0), r1"},
		{asm.JSGE.Imm(asm.R1, 5, "exit"), "if r1 s>= 5 goto exit"},
		{asm.JNE.Reg(asm.R1, asm.R2, "exit"), "if r1 != r2 goto exit"},
		{asm.JNE.Imm32(asm.R1, 7, "exit"), "if w1 != 7 goto exit"},
		{asm.Ja.Label("exit"), "goto exit"},
		{asm.FnGetCurrentPidTgid.Call(), "call bpf_get_current_pid_tgid"},
		{asm.Instruction{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Call), Src: asm.PseudoKfuncCall, Constant: 77}, "call kernel function #77"},
		{asm.Return(), "exit"},
	} {
		require.Equal(t, tc.want, instructionText(tc.in))
	}
}

// TestListing verifies that steps are comments, labels are on their own lines, and
// wide instructions count twice.
func TestListing(t *testing.T) {
	var text strings.Builder
	listing(&text, asm.Instructions{
		asm.LoadMapPtr(asm.R1, 0).WithReference("events").WithSource(asm.Comment("reserve")),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("done").WithSource(asm.Comment("done")),
		asm.Return(),
	})
	require.Equal(t, `        // reserve
    0   r1 = map events
done:
        // done
    2   r0 = 0
    3   exit
`, text.String())
}
