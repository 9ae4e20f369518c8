package compiler

import (
	"encoding/binary"
	"slices"

	"github.com/cilium/ebpf/asm"
)

// capture copies items into their slots.
func (p *program) capture(items []*Value) {
	for _, v := range items {
		p.step("%s", v.Name)
		p.captureItem(v, slices.Index(p.event.Items, v))
	}
}

func (p *program) captureItem(v *Value, i int) {
	slot := p.event.Layout.Slots[i]
	fault, done := p.fresh("fault"), p.fresh("next")
	switch {
	case v.Base.Builtin == KernelStack:
		p.captureStack(slot, i, done)
	case v.Base.Builtin == Comm:
		p.move(asm.R1, rOut, slot.Data-p.origin)
		p.emit(asm.Mov.Imm(asm.R2, int32(slot.Cap)), asm.FnGetCurrentComm.Call())
	case v.Base.Const != nil:
		p.move(asm.R1, rOut, slot.Data-p.origin)
		p.storeConst(asm.R1, v.Base.Const)
	case v.Scalar != nil:
		p.captureScalar(v, slot, fault)
	default:
		p.captureBytes(v, slot, fault)
	}
	if v.Pointee != nil {
		p.capturePointee(v, slot, i, done)
	}
	switch {
	case p.refers(fault):
		p.emit(asm.Ja.Label(done))
		p.label(fault)
		p.emit(asm.StoreMem(rOut, p.out(slot.Off), rBase, asm.DWord))
		p.markFault(i, ValueFault)
		p.label(done)
	case p.refers(done):
		p.label(done)
	}
}

// storeConst stores bytes at a register, filled up to whole words.
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

// captureScalar stores a number as 8 bytes and leaves it in R1. What a
// predicate was true of is not read again: it may have changed.
func (p *program) captureScalar(v *Value, slot Slot, fault string) {
	if at := p.saved[v]; at != 0 {
		p.emit(asm.LoadMem(asm.R1, asm.RFP, int16(at), asm.DWord))
	} else {
		// On a longer path, direct loads could not tell which pointer was bad.
		direct := p.direct(v) && len(v.Path) == 1
		p.readScalar(v, direct, true, fault)
	}
	p.emit(asm.StoreMem(rOut, p.out(slot.Off), asm.R1, asm.DWord))
}

// captureBytes copies a record or an array.
func (p *program) captureBytes(v *Value, slot Slot, fault string) {
	if len(v.Path) > 0 {
		p.walk(v, false, fault)
		last := v.Path[len(v.Path)-1]
		p.move(asm.R3, rBase, last.Off)
		p.move(asm.R1, rOut, slot.Data-p.origin)
		p.emit(asm.Mov.Imm(asm.R2, int32(slot.Cap)), readBytes(last.User))
		p.emit(asm.JNE.Imm(asm.R0, 0, fault))
		return
	}
	words := v.Base.Param.Words
	if len(words) == 0 || slot.Cap == 0 {
		return // an empty record
	}
	words = words[v.Base.Word:]
	switch {
	case p.kind.trampoline():
		p.move(asm.R3, rContext, 8*words[0].Slot)
		p.readOut(slot.Data, slot.Cap)
	case words[0].Reg < 0:
		p.emit(asm.LoadMem(rBase, rContext, p.opts.Arch.SP, asm.DWord))
		p.move(asm.R3, rBase, words[0].Stack)
		p.readOut(slot.Data, slot.Cap)
		p.emit(asm.JNE.Imm(asm.R0, 0, fault))
	default:
		for i, w := range words[:align8(slot.Cap)/8] {
			p.emit(
				asm.LoadMem(asm.R1, rContext, w.Reg, asm.DWord),
				asm.StoreMem(rOut, p.out(slot.Data+8*i), asm.R1, asm.DWord),
			)
		}
	}
}

// capturePointee copies what the pointer in R1 points to.
func (p *program) capturePointee(v *Value, slot Slot, i int, done string) {
	if v.Text != NoText {
		p.step("string at %s", v.Name)
		p.emit(asm.Mov.Reg(asm.R3, asm.R1))
		p.move(asm.R1, rOut, slot.Data-p.origin)
		p.emit(
			asm.Mov.Imm(asm.R2, int32(slot.Cap)),
			readString(v.Text),
			asm.JSGT.Imm(asm.R0, 0, done),
		)
	} else {
		p.step("*%s", v.Name)
		p.emit(asm.Mov.Reg(asm.R3, asm.R1))
		p.readOut(slot.Data, slot.Cap)
		p.emit(asm.JEq.Imm(asm.R0, 0, done))
	}
	p.markFault(i, PointeeFault)
}

// readString is the call that copies a string from R3, of at most R2 bytes with
// its NUL, to R1.
func readString(t Text) asm.Instruction {
	if t == UserText {
		return asm.FnProbeReadUserStr.Call()
	}
	return asm.FnProbeReadKernelStr.Call()
}

// programFrames is how many frames of a stack are the trampoline's and the
// program's own.
const programFrames = 2

// captureStack stores the return addresses of the callers, and before them the
// number of their bytes.
func (p *program) captureStack(slot Slot, i int, done string) {
	skip := int32(0)
	if p.kind.trampoline() {
		skip = programFrames
	}
	p.emit(asm.Mov.Reg(asm.R1, rContext))
	p.move(asm.R2, rOut, slot.Data-p.origin)
	p.emit(
		asm.Mov.Imm(asm.R3, int32(slot.Cap)),
		asm.Mov.Imm(asm.R4, skip),
		asm.FnGetStack.Call(),
		asm.StoreMem(rOut, p.out(slot.Off), asm.R0, asm.DWord),
		asm.JSGE.Imm(asm.R0, 0, done),
	)
	p.markFault(i, PointeeFault)
}

// readOut copies size bytes from the kernel address in R3 into the record.
func (p *program) readOut(off, size int) {
	p.move(asm.R1, rOut, off-p.origin)
	p.emit(asm.Mov.Imm(asm.R2, int32(size)), asm.FnProbeReadKernel.Call())
}

func (p *program) markFault(i int, f Fault) {
	p.emit(asm.StoreImm(rOut, p.out(p.event.Layout.Faults+i), int64(f), asm.Byte))
}

// out is the offset from rOut of an offset in the record.
func (p *program) out(off int) int16 { return int16(off - p.origin) }
