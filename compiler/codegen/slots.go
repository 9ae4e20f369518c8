package codegen

import (
	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// A slot begins with the tag of the call that uses it, or 0. A tag is the
// address of the call's frame, which is unique among the calls of a function
// that are under way, regardless of recursion, preemption and migration. The
// upper 16 bits, which are the same in all addresses of a stack, are replaced
// by the number of the function, or of the level of a chain: a function that
// ends in a jump to another one shares its frame with it. The class of a large
// value is in the 3 lowest bits.

// frame stores the tag of the call in the stack frame.
func (p *program) frame() {
	p.step("the call's tag")
	class := p.own().class
	if p.numbered() {
		p.emit(asm.Mov.Reg(asm.R1, rContext), asm.FnGetAttachCookie.Call(), asm.LSh.Imm(asm.R0, 48))
		p.loadFrame(asm.R1)
		p.emit(asm.Xor.Reg(asm.R1, asm.R0))
		if class != 0 {
			p.emit(asm.Xor.Imm(asm.R1, int32(class)))
		}
	} else {
		p.frameNumber()
		p.mark(p.function, class)
	}
	p.emit(asm.StoreMem(asm.RFP, spTag, asm.R1, asm.DWord))
}

// mark converts the frame address in R1 to a tag, or a tag to the frame
// address.
func (p *program) mark(function, class int) {
	if mark := uint64(function)<<48 | uint64(class); mark != 0 {
		p.emit(asm.LoadImm(asm.R2, int64(mark), asm.DWord), asm.Xor.Reg(asm.R1, asm.R2))
	}
}

// frameNumber loads the address of the call's frame into R1 as a number. A
// program can convert its context to a number only by way of memory.
func (p *program) frameNumber() {
	switch {
	case !p.kind.Trampoline():
		p.loadFrame(asm.R1)
	case p.busy != 0: // no other program of the probe uses this scratch space
		p.emit(asm.LoadMem(asm.R1, asm.RFP, int16(p.busy), asm.DWord))
		if !p.opts.Features.CountsSkipped {
			p.emit(
				asm.LoadMem(asm.R2, asm.R1, 0, asm.DWord),
				asm.And.Imm(asm.R2, 8*(compiler.Nesting-1)),
				asm.Add.Reg(asm.R1, asm.R2),
			)
		}
		p.emit(
			asm.StoreMem(asm.R1, busyScratch, rContext, asm.DWord),
			asm.LoadMem(asm.R1, asm.R1, busyScratch, asm.DWord),
		)
	default:
		p.emit(asm.StoreMem(asm.RFP, spScratch, rContext, asm.DWord), asm.Mov.Imm(asm.R2, 8))
		p.move(asm.R1, asm.RFP, spTag)
		p.move(asm.R3, asm.RFP, spScratch)
		p.emit(asm.FnProbeReadKernel.Call(), asm.LoadMem(asm.R1, asm.RFP, spTag, asm.DWord))
	}
}

// loadFrame loads the address of the call's frame, or of its caller's, into reg.
// The number is the same in the entry and in the return program.
func (p *program) loadFrame(reg asm.Register) {
	if p.kind.Trampoline() {
		p.emit(asm.Mov.Reg(reg, rContext))
		return
	}
	if p.kind == compiler.RawTP { // there is no call
		p.emit(asm.Mov.Imm(reg, 0))
		return
	}
	if p.kind == compiler.Breakpoint { // the address tells whose memory was written
		p.emit(watchedWord(reg, uint32(p.probe.Watch.Slot*compiler.WatchedSize)), asm.LoadMem(reg, reg, compiler.WatchedAddr, asm.DWord))
		return
	}
	if by := p.opts.Arch.CallerFrame; by != 0 && p.kind.Multi() {
		p.emit(asm.LoadMem(reg, rContext, by, asm.DWord))
		return
	}
	p.emit(asm.LoadMem(reg, rContext, p.opts.Arch.SP, asm.DWord))
	if p.side == compiler.AtReturn {
		p.emit(asm.Add.Imm(reg, int32(-p.opts.Arch.RetSP)))
	}
}

// take allocates a slot for the call, points rOut to it, and stores the tag.
//
// The slots of a thread are a stack. A return only empties its slot; the next
// entry determines the topmost used slot. An interrupt between any two
// instructions does no harm, because its calls have ended when this program
// continues.
func (p *program) take(full string) {
	t := p.threads
	none, settle, taken := p.fresh("stranger"), p.fresh("settle"), p.fresh("taken")
	p.step("a slot of the thread")
	here := p.thread(none)
	p.later(none, func() { p.newThread(here, full) })
	p.emit(
		asm.LoadMem(asm.R3, asm.R2, elementTop, asm.DWord),
		asm.JGT.Imm(asm.R3, int32(t.last()), full), // never true: for the verifier
		asm.LoadMem(asm.R1, asm.R2, elementSlots, asm.DWord),
		asm.Or.Reg(asm.R1, asm.R3),
		asm.JNE.Imm(asm.R1, 0, settle), // otherwise there is no other call
	)
	p.label(taken)
	p.emit(asm.Mov.Reg(rOut, asm.R2), asm.Add.Reg(rOut, asm.R3))
	p.emit(asm.Add.Imm(rOut, elementSlots), asm.LoadMem(asm.R1, asm.RFP, spTag, asm.DWord))
	if p.publishes() {
		p.emit(asm.LSh.Imm(asm.R1, 16), asm.RSh.Imm(asm.R1, 16))
	}
	p.emit(asm.StoreMem(rOut, 0, asm.R1, asm.DWord))
	p.later(settle, func() {
		p.settle(full)
		p.emit(asm.StoreMem(asm.R2, elementTop, asm.R3, asm.DWord), asm.Ja.Label(taken))
	})
}

// find points reg to the thread's slot with the tag at a stack offset.
func (p *program) find(reg asm.Register, tag int, missing string) {
	p.search(reg, tag, missing, tag == spTag && p.side == compiler.AtReturn && p.skipsSides())
}

// search is find. The call with the tag returns, if returns is true.
func (p *program) search(reg asm.Register, tag int, missing string, returns bool) {
	t := p.threads
	other, found := p.fresh("other"), p.fresh("found")
	p.thread(missing)
	p.emit(
		asm.LoadMem(asm.R1, asm.RFP, int16(tag), asm.DWord),
		asm.LoadMem(asm.R3, asm.R2, elementTop, asm.DWord),
		asm.JGT.Imm(asm.R3, int32(t.last()), missing), // never true: for the verifier
	)
	if p.claims() {
		p.emit(asm.And.Imm(asm.R3, -8)) // it is aligned: for the verifier
	}
	p.emit(
		asm.Mov.Reg(asm.R4, asm.R2),
		asm.Add.Reg(asm.R4, asm.R3),
		asm.LoadMem(asm.R0, asm.R4, elementSlots, asm.DWord),
		asm.JNE.Reg(asm.R0, asm.R1, other),
	)
	p.move(reg, asm.R4, elementSlots)
	p.label(found)
	p.later(other, func() {
		p.step("further down")
		lower := p.fresh("lower")
		p.label(lower)
		p.down(missing)
		p.emit(
			asm.LoadMem(asm.R0, asm.R4, elementSlots, asm.DWord),
			asm.JNE.Reg(asm.R0, asm.R1, lower),
		)
		p.move(reg, asm.R4, elementSlots)
		if returns && len(t.big) == 0 { // large values are deleted one by one: see abandon
			p.leaveEnded(found)
		}
		p.emit(asm.Ja.Label(found))
	})
}

// leaveEnded makes the topmost slot with the frame of the tag in R1 the topmost one
// in use. The call returns, and what is kept of it has been found, so those in slots
// above it have ended. If one is still there, a trampoline has skipped its return, in
// an interrupt that came when this program had begun: see busyMap.
func (p *program) leaveEnded(done string) {
	t := p.threads
	slot, own := p.fresh("slot"), p.fresh("frame")
	p.step("the topmost slot of this call's frame")
	p.emit(
		asm.LoadMem(asm.R3, asm.R2, elementTop, asm.DWord),
		asm.JGT.Imm(asm.R3, int32(t.last()), done), // never true: for the verifier
		asm.Mov.Reg(asm.R4, asm.R2),
		asm.Add.Reg(asm.R4, asm.R3),
	)
	p.label(slot)
	p.emit(
		asm.LoadMem(asm.R0, asm.R4, elementSlots, asm.DWord),
		asm.Xor.Reg(asm.R0, asm.R1),
		asm.LSh.Imm(asm.R0, 16), // without the numbers
		asm.RSh.Imm(asm.R0, 16+classBits),
		asm.JEq.Imm(asm.R0, 0, own),
	)
	p.down(done)
	p.emit(asm.Ja.Label(slot))
	p.label(own)
	p.emit(
		asm.LoadMem(asm.R0, asm.R2, elementTop, asm.DWord),
		asm.JEq.Reg(asm.R0, asm.R3, done),
		asm.JGT.Imm(asm.R0, int32(t.last()), done), // never true: for the verifier
		asm.Mov.Reg(asm.R5, asm.R2),
		asm.Add.Reg(asm.R5, asm.R0),
		asm.Mov.Imm(asm.R0, 0),
		asm.StoreMem(asm.R5, elementSlots, asm.R0, asm.DWord),
		asm.StoreMem(asm.R2, elementTop, asm.R3, asm.DWord),
	)
}

// down points R4 to the slot below the one at R3 in the element at R2, or goes to none if
// that is the lowest.
func (p *program) down(none string) {
	t := p.threads
	p.emit(
		asm.Sub.Imm(asm.R3, int32(t.slot)),
		asm.JGT.Imm(asm.R3, int32(t.last()), none), // below 0
		asm.Mov.Reg(asm.R4, asm.R2),
		asm.Add.Reg(asm.R4, asm.R3),
	)
}

// inside stores at spNear the tag of the innermost call of an outer level that
// contains this one: the nearest of those further up the same stack.
func (p *program) inside(level int, none string) {
	t := p.threads
	slot, next, found := p.fresh("slot"), p.fresh("next"), p.fresh("inside")
	p.thread(none)
	p.emit(asm.LoadMem(rBase, asm.RFP, spTag, asm.DWord))
	if mark := uint64(level^p.function) << 48; mark != 0 {
		p.emit(asm.LoadImm(asm.R1, int64(mark), asm.DWord), asm.Xor.Reg(rBase, asm.R1))
	}
	p.emit(
		asm.Or.Imm(rBase, 1<<classBits-1),
		asm.LoadMem(asm.R3, asm.R2, elementTop, asm.DWord),
		asm.JGT.Imm(asm.R3, int32(t.last()), none), // never true: for the verifier
		asm.Mov.Reg(asm.R4, asm.R2),
		asm.Add.Reg(asm.R4, asm.R3),
	)
	p.label(slot)
	p.emit(
		asm.LoadMem(asm.R1, asm.R4, elementSlots, asm.DWord),
		asm.Mov.Reg(asm.R0, asm.R1),
		asm.Xor.Reg(asm.R0, rBase),
		asm.RSh.Imm(asm.R0, p.stackBits()),
		asm.JNE.Imm(asm.R0, 0, next),
		asm.JGT.Reg(asm.R1, rBase, found),
	)
	p.label(next)
	p.down(none)
	p.emit(asm.Ja.Label(slot))
	p.label(found)
	p.emit(asm.StoreMem(asm.RFP, spNear, asm.R1, asm.DWord))
}
