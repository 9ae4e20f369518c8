package compiler

import (
	"crypto/sha256"
	"fmt"

	"github.com/cilium/ebpf/asm"
)

// session makes the program of a kprobe.session, which runs at entry and at
// return.
func session(c *code, p *Probe, isReturn int64, entry, ret func(*code)) {
	c.step("%s %s", Session, p.Func.Name)
	c.emit(
		asm.Mov.Reg(rContext, asm.R1),
		// bpf_session_is_return(): of no argument up to 6.18, later of ctx.
		asm.Instruction{
			OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Call), Src: asm.PseudoKfuncCall, Constant: isReturn,
		},
		asm.And.Imm(asm.R0, 0xff), // it is a bool
	)
	const atReturn = "return"
	c.emit(asm.JNE.Imm(asm.R0, 0, atReturn))
	half(c, entry)
	c.label(atReturn)
	half(c, ret)
}

// half is one side of a session; nil: nothing is to be done there.
func half(c *code, side func(*code)) {
	if side != nil {
		side(c)
		return
	}
	c.step("nothing to do on this side")
	c.emit(asm.Mov.Imm(asm.R0, 0), asm.Return())
}

// signature tells programs apart by what they do. A glob has thousands.
func signature(kind Kind, insns asm.Instructions) string {
	b := sha256.New()
	b.Write([]byte(kind))
	for _, in := range insns {
		fmt.Fprintf(b, "\n%x %d %d %d %d %s %s", in.OpCode, in.Dst, in.Src, in.Offset, in.Constant, in.Reference(), in.Symbol())
	}
	return string(b.Sum(nil))
}
