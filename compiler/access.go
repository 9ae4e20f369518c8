package compiler

import "github.com/cilium/ebpf/asm"

// word loads the word that a value begins with into dst, which must be one that
// the program keeps or R1.
func (p *program) word(dst asm.Register, base Base, fail string) {
	from := base.Param
	w := from.Words[base.Word]
	switch {
	case p.kind.trampoline() && from.Typed:
		p.emit(asm.LoadMem(dst, rContext, int16(8*w.Slot), asm.DWord))
	case p.kind.trampoline():
		p.move(asm.R3, rContext, 8*w.Slot)
		p.readScratch(8)
		p.emit(asm.LoadMem(dst, asm.RFP, spScratch, asm.DWord))
	case w.Reg >= 0:
		p.emit(asm.LoadMem(dst, rContext, w.Reg, asm.DWord))
	default:
		p.emit(asm.LoadMem(p.ptr, rContext, p.opts.Arch.SP, asm.DWord))
		p.move(asm.R3, p.ptr, w.Stack)
		p.readScratch(8)
		p.emit(asm.JNE.Imm(asm.R0, 0, fail), asm.LoadMem(dst, asm.RFP, spScratch, asm.DWord))
	}
}

// readScratch copies size bytes from the kernel address in R3.
func (p *program) readScratch(size int) { p.scratch(size, false) }

// scratch copies size bytes from the address in R3, of the kernel or of the
// process.
func (p *program) scratch(size int, user bool) {
	p.move(asm.R1, asm.RFP, spScratch)
	p.emit(asm.Mov.Imm(asm.R2, int32(size)), readBytes(user))
}

// readBytes is the call that copies R2 bytes from R3 to R1.
func readBytes(user bool) asm.Instruction {
	if user {
		return asm.FnProbeReadUser.Call()
	}
	return asm.FnProbeReadKernel.Call()
}

// base puts the pointer that a path begins with into the base register.
func (p *program) base(v *Value, fail string) {
	if v.Base.Param != nil && p.again != 0 {
		p.emit(asm.LoadMem(p.ptr, rStash, int16(p.again), asm.DWord))
		return
	}
	if v.Base.Param != nil {
		p.word(p.ptr, v.Base, fail)
		return
	}
	p.emit(asm.LoadImm(p.ptr, int64(v.Base.Addr), asm.DWord))
	if v.Base.PerCPU == 0 {
		return
	}
	p.emit(
		asm.FnGetSmpProcessorId.Call(),
		asm.LSh.Imm(asm.R0, 3),
		asm.LoadImm(asm.R3, int64(v.Base.PerCPU), asm.DWord),
		asm.Add.Reg(asm.R3, asm.R0),
	)
	p.readScratch(8)
	p.emit(
		asm.JNE.Imm(asm.R0, 0, fail),
		asm.LoadMem(asm.R1, asm.RFP, spScratch, asm.DWord),
		asm.Add.Reg(p.ptr, asm.R1),
	)
}

// walk follows a value's path up to its last access and leaves the pointer
// that this is based on in the base register. It goes to fail with the pointer that could
// not be read there.
func (p *program) walk(v *Value, direct bool, fail string) {
	p.base(v, fail)
	for _, a := range v.Path[:len(v.Path)-1] {
		if direct {
			p.guard(fail)
			p.emit(load(p.ptr, p.ptr, a.Off, 8))
			continue
		}
		p.move(asm.R3, p.ptr, a.Off)
		p.scratch(8, a.User)
		p.emit(
			asm.JNE.Imm(asm.R0, 0, fail),
			asm.LoadMem(p.ptr, asm.RFP, spScratch, asm.DWord),
		)
	}
}

// notKernel is where the addresses begin, as signed numbers, that nothing may be
// loaded from directly: what the kernel does not use from the end of the modules
// on (Documentation/arch/x86/x86_64/mm.rst), the vsyscall page and error
// pointers among it, then NULL and user space. Before 6.8 a load from the
// vsyscall page is not caught and ends in an oops.
const notKernel = -0x1000000

// guard refuses pointers that are not kernel addresses. A test for 0 would not
// do, since the verifier takes arguments for valid and removes it (6.3).
func (p *program) guard(fail string) {
	p.emit(asm.JSGE.Imm(p.ptr, notKernel, fail))
}

// readScalar loads a value as a 64-bit number into R1. A direct load of an
// address without memory gives 0: if zeroCounts, a 0 is confirmed by a read
// that can fail.
func (p *program) readScalar(v *Value, direct, zeroCounts bool, fail string) {
	switch {
	case v.Base.Builtin != NoBuiltin:
		p.readBuiltin(v.Base.Builtin)
	case v.inWords():
		p.word(asm.R1, v.Base, fail)
		p.extend(asm.R1, v.Load)
	default:
		p.readPath(v, direct, zeroCounts, fail)
	}
	p.convert(v)
}

func (p *program) readPath(v *Value, direct, zeroCounts bool, fail string) {
	p.walk(v, direct, fail)
	last := v.Path[len(v.Path)-1]
	if last.Addr {
		p.move(asm.R1, p.ptr, last.Off)
		return
	}
	if !direct {
		p.readMemory(v.Load, last, fail)
		return
	}
	p.guard(fail)
	p.emit(load(asm.R1, p.ptr, last.Off, last.Size))
	p.extendLoaded(v.Load)
	if zeroCounts {
		valid := p.fresh("valid")
		p.emit(asm.JNE.Imm(asm.R1, 0, valid))
		p.readMemory(v.Load, last, fail)
		p.label(valid)
	}
}

// readMemory reads a scalar by the helper.
func (p *program) readMemory(s *Scalar, a Access, fail string) {
	size := a.Size
	if size&(size-1) != 0 { // part of a bitfield's unit
		size = 8
		p.emit(asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.RFP, spScratch, asm.R1, asm.DWord))
	}
	p.move(asm.R3, p.ptr, a.Off)
	p.scratch(a.Size, a.User)
	p.emit(asm.JNE.Imm(asm.R0, 0, fail), load(asm.R1, asm.RFP, spScratch, size))
	p.extendLoaded(s)
}

// extendLoaded extends what a load of the scalar's own size, or of a
// bitfield's bytes, has left in R1.
func (p *program) extendLoaded(s *Scalar) {
	if s.Signed || s.Bits != 0 {
		p.extend(asm.R1, s)
	}
}

// readBuiltin puts what the kernel knows of the call into R1.
func (p *program) readBuiltin(b Builtin) {
	switch b {
	case PID:
		p.emit(asm.LoadMem(asm.R1, asm.RFP, spPIDTID, asm.DWord), asm.RSh.Imm(asm.R1, 32))
	case TID:
		p.emit(asm.LoadMem(asm.R1, asm.RFP, spPIDTID, asm.DWord), asm.Mov.Reg32(asm.R1, asm.R1))
	case CPU:
		p.emit(asm.FnGetSmpProcessorId.Call(), asm.Mov.Reg32(asm.R1, asm.R0))
	case UID:
		p.emit(asm.FnGetCurrentUidGid.Call(), asm.Mov.Reg32(asm.R1, asm.R0))
	case CgroupID:
		p.emit(asm.FnGetCurrentCgroupId.Call(), asm.Mov.Reg(asm.R1, asm.R0))
	case Duration:
		p.emit(
			asm.FnKtimeGetNs.Call(),
			asm.Mov.Reg(asm.R1, asm.R0),
			asm.LoadMem(asm.R2, rStash, int16(p.stash.start), asm.DWord),
			asm.Sub.Reg(asm.R1, asm.R2),
		)
	}
}

// convert makes of the number in R1 what the spec wants it to be.
func (p *program) convert(v *Value) {
	for i := range v.Casts {
		c := &v.Casts[i]
		if !c.Bool {
			p.extend(asm.R1, c)
			continue
		}
		zero := p.fresh("false")
		p.emit(asm.JEq.Imm(asm.R1, 0, zero), asm.Mov.Imm(asm.R1, 1))
		p.label(zero)
	}
	if v.Swap {
		size := map[int]asm.Size{2: asm.Half, 4: asm.Word, 8: asm.DWord}[v.Scalar.Size]
		p.emit(asm.HostTo(asm.BE, asm.R1, size))
	}
}
