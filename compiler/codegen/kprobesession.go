package codegen

import (
	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// kprobeSession generates the program of a kprobe.session, which runs at entry and at
// return.
func kprobeSession(c *code, p *compiler.Probe, entry, ret func(*code)) {
	c.step("%s %s", compiler.KprobeSession, p.Func.Name)
	c.emit(asm.Mov.Reg(rContext, asm.R1))
	const atReturn = "return"
	c.isReturn(p.Features, atReturn)
	half(c, entry)
	c.label(atReturn)
	half(c, ret)
}

// isReturn goes to next on the return side of a kprobe.session.
func (c *code) isReturn(f compiler.Features, next string) {
	c.emit(
		// bpf_session_is_return() has no argument up to 6.18, later it gets
		// ctx.
		asm.Instruction{
			OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Call), Src: asm.PseudoKfuncCall, Constant: int64(f.SessionIsReturn),
		},
		asm.And.Imm(asm.R0, 0xff), // the result is a bool
		asm.JNE.Imm(asm.R0, 0, next),
	)
}

// half generates one side of a kprobe.session, or an exit if side is nil.
func half(c *code, side func(*code)) {
	if side != nil {
		side(c)
		return
	}
	c.step("nothing to do on this side")
	c.emit(asm.Mov.Imm(asm.R0, 0), asm.Return())
}
