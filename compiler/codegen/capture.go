package codegen

import (
	"encoding/binary"
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// capture copies items into their slots.
func (p *program) capture(items []*compiler.Value) {
	for _, v := range items {
		p.step("%s", v.Name)
		p.captureItem(v, slices.Index(p.event.Items, v))
	}
}

func (p *program) captureItem(v *compiler.Value, i int) {
	slot := p.slot(i)
	fault, done := p.fresh("fault"), p.fresh("next")
	p.capturing = true
	defer func() { p.capturing = false }()
	switch {
	case p.saved[v] != 0 && v.Scalar == nil:
		p.copyWord(rOut, p.out(slot.Data), asm.RFP, int16(p.saved[v])) // the bytes of watched memory, see keepState
	case v.Base.Builtin == compiler.KernelStack:
		p.getStack(slot)
		p.stackSize(slot, i, done)
	case v.Base.Builtin == compiler.UserStack:
		// The kernel finds the file of each frame and reads its build ID, as the process
		// may have gone when the event is shown.
		p.callStack(slot.Data, slot.Cap, userStack|userBuildIDs)
		p.stackSize(slot, i, done)
	case v.Base.Builtin == compiler.Comm:
		p.move(asm.R1, rOut, slot.Data-p.origin)
		p.emit(asm.Mov.Imm(asm.R2, int32(slot.Cap)), asm.FnGetCurrentComm.Call())
	case v.Base.Const != nil:
		p.move(asm.R1, rOut, slot.Data-p.origin)
		p.storeConst(asm.R1, v.Base.Const)
	case v.Before != nil:
		p.captureDiff(v, slot, fault)
	case v.Scalar != nil:
		p.captureScalar(v, slot, fault)
	default:
		p.captureBytes(v, slot, fault)
	}
	if v.Pointee != nil {
		p.capturePointee(v, slot, i, fault, done)
	}
	switch {
	case p.refers(fault):
		p.emit(asm.Ja.Label(done))
		p.label(fault)
		p.emit(asm.StoreMem(rOut, p.out(slot.Off), rBase, asm.DWord))
		p.markFault(i, compiler.ValueFault)
		p.label(done)
	case p.refers(done):
		p.label(done)
	}
}

// storeConst stores bytes at a register, padded to whole words.
func (p *program) storeConst(at asm.Register, bytes []byte) {
	for i := 0; i < len(bytes); i += 8 {
		var word [8]byte
		copy(word[:], bytes[i:])
		p.emit(
			asm.LoadImm(asm.R2, int64(binary.LittleEndian.Uint64(word[:])), asm.DWord),
			asm.StoreMem(at, int16(i), asm.R2, asm.DWord),
		)
	}
}

// captureScalar stores a number as 8 bytes and leaves it in R1. A value that a
// predicate has tested is not read again: it may have changed.
func (p *program) captureScalar(v *compiler.Value, slot compiler.Slot, fault string) {
	if at := p.saved[v]; at != 0 {
		p.emit(asm.LoadMem(asm.R1, asm.RFP, int16(at), asm.DWord))
	} else {
		// On longer paths, direct loads could not tell which pointer was bad. The
		// same is true of the operands of a computed value.
		direct := p.loads.Read(v) && len(v.Path) == 1
		p.readScalar(v, direct, true, fault)
	}
	p.emit(asm.StoreMem(rOut, p.out(slot.Off), asm.R1, asm.DWord))
}

// captureBytes copies a structure or an array.
func (p *program) captureBytes(v *compiler.Value, slot compiler.Slot, fault string) {
	if len(v.Path) > 0 {
		p.readArray(v, 0, rOut, slot.Data-p.origin, slot.Cap, fault)
		return
	}
	words := v.Base.Param.Words
	if len(words) == 0 || slot.Cap == 0 {
		return // an empty structure
	}
	words = words[v.Base.Word:]
	switch {
	case p.kind.Trampoline():
		p.move(asm.R3, rContext, 8*words[0].Slot)
		p.readOut(slot.Data, slot.Cap)
	case words[0].Reg < 0:
		p.emit(asm.LoadMem(rBase, rContext, p.opts.Arch.SP, asm.DWord))
		p.move(asm.R3, rBase, words[0].Stack)
		p.readOut(slot.Data, slot.Cap)
		p.emit(asm.JNE.Imm(asm.R0, 0, fault))
	default:
		for i, w := range words[:compiler.Align8(slot.Cap)/8] {
			p.copyWord(rOut, p.out(slot.Data+8*i), rContext, w.Reg)
		}
	}
}

// capturePointee copies what the pointer in R1 points to.
func (p *program) capturePointee(v *compiler.Value, slot compiler.Slot, i int, fault, done string) {
	if v.Text == compiler.PathText {
		p.capturePath(v.Walk, slot, fault)
		return
	}
	if v.Text != compiler.NoText {
		p.step("string at %s", v.Name)
		unreadable := p.fresh("unreadable")
		p.emit(asm.Mov.Reg(asm.R3, asm.R1))
		p.elsewhere(v.Text.Space(), unreadable)
		p.move(asm.R1, rOut, slot.Data-p.origin)
		p.emit(asm.Mov.Imm(asm.R2, int32(slot.Cap)))
		p.readString(v.Text.Space())
		if p.form.longer != "" {
			p.emit(asm.JSGE.Imm(asm.R0, int32(slot.Cap), p.form.longer))
		}
		p.emit(asm.JSGT.Imm(asm.R0, 0, done))
		p.label(unreadable)
	} else {
		p.step("*%s", v.Name)
		p.emit(asm.Mov.Reg(asm.R3, asm.R1))
		p.readOut(slot.Data, slot.Cap)
		p.emit(asm.JEq.Imm(asm.R0, 0, done))
	}
	p.markFault(i, compiler.PointeeFault)
}

// readString copies a string of at most R2 bytes, including its NUL, from R3 to
// R1.
func (p *program) readString(in compiler.Space) {
	p.read(in, asm.FnProbeReadKernelStr, asm.FnProbeReadUserStr)
}

// stackSize stores the size of a stack in bytes, which is in R0, before it.
func (p *program) stackSize(slot compiler.Slot, i int, done string) {
	p.emit(
		asm.StoreMem(rOut, p.out(slot.Off), asm.R0, asm.DWord),
		asm.JSGE.Imm(asm.R0, 0, done),
	)
	p.markFault(i, compiler.PointeeFault)
}

// getStack stores the return addresses of the callers. R0 is their size in bytes, or
// negative.
func (p *program) getStack(slot compiler.Slot) {
	skip, missing := int32(0), 0
	switch {
	case p.kind.Trampoline():
		skip = p.opts.Arch.ProgramFrames
	case p.lacksCaller():
		missing = 8
	}
	p.callStack(slot.Data+missing, slot.Cap-missing, skip)
	if missing > 0 {
		p.insertCaller(slot)
	}
}

// callStack calls bpf_get_stack for size bytes at an offset in the record. R0 is the size
// of the stack in bytes, or negative.
func (p *program) callStack(off, size int, flags int32) {
	p.emit(asm.Mov.Reg(asm.R1, rContext))
	p.move(asm.R2, rOut, off-p.origin)
	p.emit(asm.Mov.Imm(asm.R3, int32(size)), asm.Mov.Imm(asm.R4, flags), asm.FnGetStack.Call())
}

// Flags of bpf_get_stack (include/uapi/linux/bpf.h).
const (
	userStack    = 1 << 8
	userBuildIDs = 1 << 11
)

// lacksCaller reports whether the kernel's stack lacks the caller of the
// function: where a call leaves the return address in a register, and the function
// has not made its frame.
func (p *program) lacksCaller() bool {
	return p.opts.Arch.RetAddr.Reg >= 0 && p.kind != compiler.Breakpoint && p.side != compiler.AtReturn && p.event.Probe.Offset == 0
}

// insertCaller inserts the return address after the first address of a stack, which
// was stored 8 bytes after its place, and adds its size to R0 unless there is no stack.
func (p *program) insertCaller(slot compiler.Slot) {
	none := p.fresh("nostack")
	p.emit(asm.JSLT.Imm(asm.R0, 8, none))
	p.copyWord(rOut, p.out(slot.Data), rOut, p.out(slot.Data+8))
	p.copyWord(rOut, p.out(slot.Data+8), rContext, p.opts.Arch.RetAddr.Reg)
	p.emit(asm.Add.Imm(asm.R0, 8))
	p.label(none)
}

// readOut copies size bytes from the kernel address in R3 into the record.
func (p *program) readOut(off, size int) {
	p.readTo(rOut, off-p.origin, size, compiler.KernelSpace)
}

func (p *program) markFault(i int, f compiler.Fault) {
	p.emit(asm.StoreImm(rOut, p.out(p.event.Layout.Faults+i), int64(f), asm.Byte))
}

// out converts an offset in the record to an offset from rOut.
func (p *program) out(off int) int16 { return int16(off - p.origin) }
