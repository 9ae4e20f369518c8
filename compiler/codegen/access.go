package codegen

import (
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// word loads the word that a value begins with into dst, which must be R1 or a
// register that helper calls preserve.
func (p *program) word(dst asm.Register, base compiler.Base, fail string) {
	from := base.Param
	w := from.Words[base.Word]
	switch {
	case p.kind.Trampoline() && from.Typed:
		p.emit(asm.LoadMem(dst, rContext, int16(8*w.Slot), asm.DWord))
	case p.kind.Trampoline():
		p.untypedWord(base)
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

// untypedWord copies a word that the verifier does not let a program load, such
// as a pointer to a number, to the scratch space.
func (p *program) untypedWord(base compiler.Base) {
	slot := base.Param.Words[base.Word].Slot
	switch {
	case !p.opts.Features.FuncArg || p.kind == compiler.TpBTF || p.kind == compiler.Iter:
		p.move(asm.R3, rContext, 8*slot)
		p.readScratch(8)
	case base.Param == p.probe.Func.Result:
		p.emit(asm.Mov.Reg(asm.R1, rContext))
		p.move(asm.R2, asm.RFP, spScratch)
		p.emit(asm.FnGetFuncRet.Call())
	default:
		p.emit(asm.Mov.Reg(asm.R1, rContext), asm.Mov.Imm(asm.R2, int32(slot)))
		p.move(asm.R3, asm.RFP, spScratch)
		p.emit(asm.FnGetFuncArg.Call())
	}
}

// untype makes the verifier treat the word in reg as a number. A typed load of
// a pointer to a structure yields a typed pointer: the verifier refuses most
// arithmetic with it, and removes checks for NULL whose outcome it thinks it
// knows. After a negation the verifier no longer knows the value, and a
// second negation restores it.
func (p *program) untype(reg asm.Register) {
	p.step("a number to the verifier")
	p.emit(asm.Neg.Imm(reg, 0), asm.Neg.Imm(reg, 0))
}

// wordNumber loads the word that a value begins with into dst, as a number.
func (p *program) wordNumber(dst asm.Register, base compiler.Base, fail string) {
	p.word(dst, base, fail)
	if p.kind.Trampoline() && base.Param.Typed && base.Param.Pointer {
		p.untype(dst)
	}
}

// readScratch copies size bytes from the kernel address in R3 to the scratch space.
func (p *program) readScratch(size int) { p.readTo(asm.RFP, spScratch, size, compiler.KernelSpace) }

// readTo copies size bytes from the address in R3 to an offset from a register.
func (p *program) readTo(to asm.Register, off, size int, in compiler.Space) {
	p.move(asm.R1, to, off)
	p.emit(asm.Mov.Imm(asm.R2, int32(size)))
	p.read(in, asm.FnProbeReadKernel, asm.FnProbeReadUser)
}

// read calls the helper that reads from the address in R3.
func (p *program) read(in compiler.Space, kernel, user asm.BuiltinFunc) {
	switch in {
	case compiler.UserSpace:
		p.emit(user.Call())
	case compiler.EitherSpace:
		ofKernel, done := p.fresh("kernel"), p.fresh("read")
		p.ofKernel(asm.R3, ofKernel)
		p.emit(user.Call(), asm.Ja.Label(done))
		p.label(ofKernel)
		p.emit(kernel.Call())
		p.label(done)
	default:
		p.onlyKernel()
		p.emit(kernel.Call())
	}
}

// onlyKernel replaces an address of user space in R3 by one that cannot be read,
// where the kernel's helper might read it.
func (p *program) onlyKernel() {
	if !p.opts.Arch.ReadsUser {
		return
	}
	kernel := p.fresh("kernel")
	p.ofKernel(asm.R3, kernel)
	p.emit(asm.Mov.Imm(asm.R3, -1))
	p.label(kernel)
}

// ofKernel jumps to kernel if the address in reg is one of the kernel's. The tag of
// a pointer of a process may be anything, so the highest bit below it decides.
// It is tested in the negated address, which the verifier does not take for a
// pointer: negated, the kernel's are small positive numbers.
func (p *program) ofKernel(reg asm.Register, kernel string) {
	p.emit(asm.Mov.Reg(asm.R0, reg), asm.Neg.Imm(asm.R0, 0))
	if unused := p.opts.Arch.Unused; unused > 0 {
		p.emit(asm.LSh.Imm(asm.R0, int32(unused)))
	}
	p.emit(asm.JSGT.Imm(asm.R0, 0, kernel))
}

// base puts the pointer that a path begins with into the base register. For a
// path of direct loads it is a typed pointer, which these loads need.
func (p *program) base(v *compiler.Value, direct bool, fail string) {
	switch kept := v.Base.Kept; {
	case v.Base.Of != nil:
		p.operation(v.Base.Of, fail)
		p.emit(asm.Mov.Reg(p.ptr, asm.R1))
	case v.Base.Builtin == compiler.Task && direct:
		p.emit(asm.FnGetCurrentTaskBtf.Call(), asm.Mov.Reg(p.ptr, asm.R0))
	case v.Base.Builtin == compiler.Task:
		p.emit(asm.FnGetCurrentTask.Call(), asm.Mov.Reg(p.ptr, asm.R0))
	case v.Base.Builtin != compiler.NoBuiltin: // a number that a cast takes for an address
		p.readBuiltin(v.Base.Builtin)
		p.emit(asm.Mov.Reg(p.ptr, asm.R1))
	case kept != nil && direct:
		p.word(p.ptr, kept.Base, fail)
	case kept != nil:
		p.operand(kept, fail)
		p.emit(asm.Mov.Reg(p.ptr, asm.R1))
	case v.Base.Param != nil && p.again != 0:
		p.emit(asm.LoadMem(p.ptr, rStash, int16(p.again), asm.DWord))
	case v.Base.Param != nil && direct:
		p.word(p.ptr, v.Base, fail)
	case v.Base.Param != nil:
		p.wordNumber(p.ptr, v.Base, fail)
	default:
		p.variable(v.Base, fail)
	}
}

// variable puts the address of a variable of the kernel into the base register.
func (p *program) variable(base compiler.Base, fail string) {
	p.emit(asm.LoadImm(p.ptr, int64(base.Addr), asm.DWord))
	if base.PerCPU == 0 {
		return
	}
	p.cpu()
	p.emit(
		asm.LSh.Imm(asm.R0, 3),
		asm.LoadImm(asm.R3, int64(base.PerCPU), asm.DWord),
		asm.Add.Reg(asm.R3, asm.R0),
	)
	p.readScratch(8)
	p.emit(
		asm.JNE.Imm(asm.R0, 0, fail),
		asm.LoadMem(asm.R1, asm.RFP, spScratch, asm.DWord),
		asm.Add.Reg(p.ptr, asm.R1),
	)
}

// cpu loads into R0 the number of the CPU that runs the program, or whose variables it
// is asked to read.
func (p *program) cpu() {
	if p.kind == compiler.RawTP {
		p.emit(asm.LoadMem(asm.R0, rContext, 0, asm.DWord))
		return
	}
	p.emit(asm.FnGetSmpProcessorId.Call())
}

// walk follows a value's path up to its last access and leaves the pointer that
// this access is based on in the base register. It jumps to fail with the
// address that could not be read in that register.
func (p *program) walk(v *compiler.Value, direct bool, fail string) {
	p.base(v, direct, fail)
	for _, a := range v.Path[:len(v.Path)-1] {
		if direct {
			p.guard(fail)
			p.emit(load(p.ptr, p.ptr, a.Off, 8))
			continue
		}
		p.move(asm.R3, p.ptr, a.Off)
		p.readTo(asm.RFP, spScratch, 8, a.In)
		p.emit(
			asm.JNE.Imm(asm.R0, 0, fail),
			asm.LoadMem(p.ptr, asm.RFP, spScratch, asm.DWord),
		)
	}
}

// notKernel is the first address, as a signed number, from which nothing may be
// loaded directly. From there on are the addresses that the kernel does not
// use, after the modules (Documentation/arch/x86/x86_64/mm.rst), including the
// vsyscall page and error pointers, then NULL and user space. Before 6.8 a load
// from the vsyscall page is not caught and ends in an oops.
const notKernel = -0x1000000

// guard jumps to fail for pointers that are not kernel addresses. A check for 0
// would not do, because the verifier assumes that arguments are valid and
// removes it (6.3).
func (p *program) guard(fail string) {
	p.emit(asm.JSGE.Imm(p.ptr, notKernel, fail))
	if !p.opts.Arch.ReadsUser {
		return
	}
	kernel := p.fresh("kernel")
	p.ofKernel(p.ptr, kernel)
	p.emit(asm.Ja.Label(fail))
	p.label(kernel)
}

// readScalar loads a value as a 64-bit number into R1. A direct load from an
// unmapped address gives 0; if zeroCounts is set, a 0 is confirmed by a read
// that can fail.
func (p *program) readScalar(v *compiler.Value, direct, zeroCounts bool, fail string) {
	switch {
	case v.Base.Number != nil:
		p.emit(asm.LoadImm(asm.R1, int64(*v.Base.Number), asm.DWord))
	case v.Base.Of != nil && len(v.Path) == 0:
		p.operation(v.Base.Of, fail)
	case v.Base.Kept != nil && len(v.Path) == 0:
		p.operand(v.Base.Kept, fail)
		p.extend(asm.R1, v.Load) // what was kept is the whole word
	case v.Base.Builtin != compiler.NoBuiltin && len(v.Path) == 0:
		p.readBuiltin(v.Base.Builtin)
	case v.InWords():
		p.wordNumber(asm.R1, v.Base, fail)
		p.extend(asm.R1, v.Load)
	default:
		p.readPath(v, direct, zeroCounts, fail)
	}
	p.convert(v)
}

// readArray copies size bytes at an offset in a structure or an array to an offset from a
// register. It walks to the beginning; later parts are read from there.
func (p *program) readArray(v *compiler.Value, from int, to asm.Register, off, size int, fail string) {
	if from == 0 {
		p.walk(v, false, fail)
	}
	last := v.Path[len(v.Path)-1]
	p.move(asm.R3, rBase, last.Off+from)
	p.readTo(to, off, size, last.In)
	p.emit(asm.JNE.Imm(asm.R0, 0, fail))
}

func (p *program) readPath(v *compiler.Value, direct, zeroCounts bool, fail string) {
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
	if last.Pointer {
		p.untype(asm.R1)
	}
	p.extendLoaded(v.Load)
	if zeroCounts {
		valid := p.fresh("valid")
		p.emit(asm.JNE.Imm(asm.R1, 0, valid))
		p.readMemory(v.Load, last, fail)
		p.label(valid)
	}
}

// readMemory reads a scalar with a helper.
func (p *program) readMemory(s *compiler.Scalar, a compiler.Access, fail string) {
	size := a.Size
	if size&(size-1) != 0 { // part of a bitfield's unit
		size = 8
		p.emit(asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.RFP, spScratch, asm.R1, asm.DWord))
	}
	p.move(asm.R3, p.ptr, a.Off)
	p.readTo(asm.RFP, spScratch, a.Size, a.In)
	p.emit(asm.JNE.Imm(asm.R0, 0, fail), load(asm.R1, asm.RFP, spScratch, size))
	p.extendLoaded(s)
}

// extendLoaded extends the value in R1 after a load of the scalar's own size,
// or of the bytes of a bitfield.
func (p *program) extendLoaded(s *compiler.Scalar) {
	if s.Signed || s.Bits != 0 {
		p.extend(asm.R1, s)
	}
}

// readBuiltin loads into R1 a value that the kernel knows about the call.
func (p *program) readBuiltin(b compiler.Builtin) {
	switch b {
	case compiler.PID:
		p.emit(asm.LoadMem(asm.R1, asm.RFP, spPIDTID, asm.DWord), asm.RSh.Imm(asm.R1, 32))
	case compiler.TID:
		p.emit(asm.LoadMem(asm.R1, asm.RFP, spPIDTID, asm.DWord), asm.Mov.Reg32(asm.R1, asm.R1))
	case compiler.CPU:
		p.cpu()
		p.emit(asm.Mov.Reg32(asm.R1, asm.R0))
	case compiler.UID:
		p.emit(asm.FnGetCurrentUidGid.Call(), asm.Mov.Reg32(asm.R1, asm.R0))
	case compiler.CgroupID:
		p.emit(asm.FnGetCurrentCgroupId.Call(), asm.Mov.Reg(asm.R1, asm.R0))
	case compiler.Task:
		p.emit(asm.FnGetCurrentTask.Call(), asm.Mov.Reg(asm.R1, asm.R0))
	case compiler.Duration:
		p.clock(asm.R1)
		p.emit(asm.LoadMem(asm.R2, rStash, int16(p.started()), asm.DWord), asm.Sub.Reg(asm.R1, asm.R2))
	}
}

// clock loads the time into a register: what readClock has read, if anything.
func (p *program) clock(dst asm.Register) {
	if p.timed {
		p.emit(asm.LoadMem(dst, asm.RFP, spNow, asm.DWord))
		return
	}
	p.emit(asm.FnKtimeGetNs.Call())
	p.move(dst, asm.R0, 0)
}

// readClock reads the time once for all that follows, if there is a $duration among
// some values: what is tested, shown and counted of a call is the same duration, and the
// time of its event is the end of it.
func (p *program) readClock(values ...*compiler.Value) {
	if slices.ContainsFunc(values, isDuration) {
		p.keepTime()
	}
}

// readClockFor reads the time for a condition and all that follows, if it is about
// $duration.
func (p *program) readClockFor(c compiler.Cond) {
	for l := range compiler.Leaves(c) {
		p.readClock(l.Value)
	}
}

// keepTime reads the time for all that follows, unless that has been done.
func (p *program) keepTime() {
	if p.timed {
		return
	}
	p.step("the time")
	p.clock(asm.R0)
	p.emit(asm.StoreMem(asm.RFP, spNow, asm.R0, asm.DWord))
	p.timed = true
}

func isDuration(v *compiler.Value) bool { return v.Uses(compiler.Duration) }

// convert applies the casts of the spec to the number in R1.
func (p *program) convert(v *compiler.Value) {
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
		size := [...]asm.Size{2: asm.Half, 4: asm.Word, 8: asm.DWord}[v.Scalar.Size]
		p.emit(asm.HostTo(asm.BE, asm.R1, size))
	}
}
