package compiler

import "github.com/cilium/ebpf/asm"

// word loads a word of a parameter or of the result into dst, which must be
// one that the program keeps or R1.
func (p *program) word(dst asm.Register, from *Param, i int, fail string) {
	w := from.Words[i]
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
		p.emit(asm.LoadMem(rBase, rContext, p.opts.Arch.SP, asm.DWord))
		p.move(asm.R3, rBase, w.Stack)
		p.readScratch(8)
		p.emit(asm.JNE.Imm(asm.R0, 0, fail), asm.LoadMem(dst, asm.RFP, spScratch, asm.DWord))
	}
}

// readScratch copies size bytes from the kernel address in R3.
func (p *program) readScratch(size int) {
	p.move(asm.R1, asm.RFP, spScratch)
	p.emit(asm.Mov.Imm(asm.R2, int32(size)), asm.FnProbeReadKernel.Call())
}

// walk follows a value's path up to its last access and leaves the pointer
// that this is based on in rBase. It goes to fail with the pointer that could
// not be read in rBase.
func (p *program) walk(v *Value, direct bool, fail string) {
	p.word(rBase, v.From, 0, fail)
	for _, a := range v.Path[:len(v.Path)-1] {
		if direct {
			p.guard(fail)
			p.emit(load(rBase, rBase, a.Off, 8))
			continue
		}
		p.move(asm.R3, rBase, a.Off)
		p.readScratch(8)
		p.emit(
			asm.JNE.Imm(asm.R0, 0, fail),
			asm.LoadMem(rBase, asm.RFP, spScratch, asm.DWord),
		)
	}
}

// guard refuses pointers that are not kernel addresses: as signed numbers
// those are negative. A test for 0 would not do, since the verifier takes
// arguments for valid and removes it (6.3).
func (p *program) guard(fail string) {
	p.emit(asm.JSGE.Imm(rBase, 0, fail))
}

// readScalar loads a value as a 64-bit number into R1. A direct load of an
// address without memory gives 0: if zeroCounts, a 0 is confirmed by a read
// that can fail.
func (p *program) readScalar(v *Value, direct, zeroCounts bool, fail string) {
	if len(v.Path) == 0 {
		p.word(asm.R1, v.From, 0, fail)
		p.extend(asm.R1, v.Scalar)
		return
	}
	p.walk(v, direct, fail)
	last := v.Path[len(v.Path)-1]
	if !direct {
		p.readMemory(v.Scalar, last, fail)
		return
	}
	p.guard(fail)
	p.emit(load(asm.R1, rBase, last.Off, last.Size))
	p.extendLoaded(v.Scalar)
	if zeroCounts {
		valid := p.fresh("valid")
		p.emit(asm.JNE.Imm(asm.R1, 0, valid))
		p.readMemory(v.Scalar, last, fail)
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
	p.move(asm.R3, rBase, a.Off)
	p.readScratch(a.Size)
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
