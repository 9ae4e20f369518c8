package compiler

import (
	"slices"

	"github.com/cilium/ebpf/asm"
)

// capture copies items into their slots.
func (p *program) capture(items []*Item) {
	for _, it := range items {
		p.step("%s", it.Value.Name)
		p.captureItem(it, slices.Index(p.event.Items, it))
	}
}

func (p *program) captureItem(it *Item, i int) {
	v, slot := it.Value, p.event.Layout.Slots[i]
	fault, done := p.fresh("fault"), p.fresh("next")
	if v.Scalar != nil {
		p.captureScalar(it, slot, fault)
	} else {
		p.captureBytes(v, slot, fault)
	}
	if v.Pointee != nil {
		p.capturePointee(v, slot, i, done)
	}
	if !p.canFault(it) {
		if v.Pointee != nil {
			p.label(done)
		}
		return
	}
	p.emit(asm.Ja.Label(done))
	p.label(fault)
	p.emit(asm.StoreMem(rOut, p.out(slot.Off), rBase, asm.DWord))
	p.markFault(i, ValueFault)
	p.label(done)
}

// canFault says whether capturing the item itself reads memory.
func (p *program) canFault(it *Item) bool {
	if p.saved[it] != 0 {
		return false
	}
	onStack := !p.kind.trampoline() && it.Value.From.Words[0].Reg < 0
	return len(it.Value.Path) > 0 || onStack
}

// captureScalar stores a number as 8 bytes and leaves it in R1. What a
// predicate was true of is not read again: it may have changed.
func (p *program) captureScalar(it *Item, slot Slot, fault string) {
	if at := p.saved[it]; at != 0 {
		p.emit(asm.LoadMem(asm.R1, asm.RFP, int16(at), asm.DWord))
	} else {
		// On a longer path, direct loads could not tell which pointer was bad.
		direct := p.direct(it.Value) && len(it.Value.Path) == 1
		p.readScalar(it.Value, direct, true, fault)
	}
	p.emit(asm.StoreMem(rOut, p.out(slot.Off), asm.R1, asm.DWord))
}

// captureBytes copies a record or an array.
func (p *program) captureBytes(v *Value, slot Slot, fault string) {
	if len(v.Path) > 0 {
		p.walk(v, false, fault)
		p.move(asm.R3, rBase, v.Path[len(v.Path)-1].Off)
		p.readOut(slot.Data, slot.Cap)
		p.emit(asm.JNE.Imm(asm.R0, 0, fault))
		return
	}
	first := v.From.Words
	switch {
	case len(first) == 0: // an empty record
	case p.kind.trampoline():
		p.move(asm.R3, rContext, 8*first[0].Slot)
		p.readOut(slot.Data, slot.Cap)
	case first[0].Reg < 0:
		p.emit(asm.LoadMem(rBase, rContext, p.opts.Arch.SP, asm.DWord))
		p.move(asm.R3, rBase, first[0].Stack)
		p.readOut(slot.Data, slot.Cap)
		p.emit(asm.JNE.Imm(asm.R0, 0, fault))
	default:
		for i, w := range first {
			p.emit(
				asm.LoadMem(asm.R1, rContext, w.Reg, asm.DWord),
				asm.StoreMem(rOut, p.out(slot.Data+8*i), asm.R1, asm.DWord),
			)
		}
	}
}

// capturePointee copies what the pointer in R1 points to.
func (p *program) capturePointee(v *Value, slot Slot, i int, done string) {
	if v.String {
		p.step("string at %s", v.Name)
		p.emit(asm.Mov.Reg(asm.R3, asm.R1))
		p.move(asm.R1, rOut, slot.Data-p.origin)
		p.emit(
			asm.Mov.Imm(asm.R2, int32(slot.Cap)),
			asm.FnProbeReadKernelStr.Call(),
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
