package codegen

import (
	"math/bits"

	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// mostEnded is the largest number of calls with missed returns that are
// forgotten when another one is entered. If there are more, that one finds no
// room: with a slot above them, slots would not be in the order of the stack.
const mostEnded = 16

// settle sets R3 to the offset of the slot above those of the calls that are
// still under way, in the element at R2. Calls that were further down the same
// stack than this one, or in its frame, have ended, but their return was
// missed.
func (p *program) settle(full string) {
	t := p.threads
	slot, ended := p.fresh("slot"), p.fresh("slot")
	lower, alive, settled := p.fresh("lower"), p.fresh("alive"), p.fresh("settled")
	p.step("the topmost slot that is taken")
	p.emit(asm.Mov.Reg(asm.R4, asm.R2), asm.Add.Reg(asm.R4, asm.R3))
	p.label(slot)
	empty := p.deferred("empty", func() {
		none := p.fresh("none")
		p.down(none)
		p.emit(asm.Ja.Label(slot))
		p.label(none)
		p.emit(asm.Mov.Imm(asm.R3, 0), asm.Ja.Label(settled))
	})
	p.emit(asm.LoadMem(asm.R1, asm.R4, elementSlots, asm.DWord), asm.JEq.Imm(asm.R1, 0, empty))
	p.blur(full)
	if !p.skipsSides() {
		p.emit(asm.StoreMem(asm.RFP, spEnded, asm.R1, asm.DWord))
	}
	p.step("does its call go on?")
	p.emit(asm.Mov.Imm(asm.R5, int32(min(t.slots, mostEnded))))
	p.label(ended)
	p.emit(
		asm.Mov.Reg(rStash, asm.R2),
		asm.Add.Reg(rStash, asm.R3),
		asm.LoadMem(asm.R1, rStash, elementSlots, asm.DWord),
		asm.JEq.Imm(asm.R1, 0, lower),
	)
	p.judge(alive)
	p.abandon()
	p.label(lower)
	p.checkpoint(loopJumps)
	p.step("the slot below")
	p.emit(
		asm.Sub.Imm(asm.R3, int32(t.slot)),
		asm.JGT.Imm(asm.R3, int32(t.last()), alive), // below 0
		asm.Sub.Imm(asm.R5, 1),
		asm.JNE.Imm(asm.R5, 0, ended),
	)
	counted := p.fresh("count")
	p.refuse(full, counted)
	p.label(alive)
	p.emit(asm.Add.Imm(asm.R3, int32(t.slot)), asm.Mov.Imm(asm.R5, 0))
	p.label(counted)
	p.countEnded()
	if t.slots > mostEnded {
		p.emit(asm.JNE.Imm(asm.R5, 0, full))
	}
	p.label(settled)
	p.blur(full)
}

// refuse goes to counted, with 1 in R5, where more calls have ended than are
// forgotten at once. R3 is the offset of the next slot. Of the other calls it
// forgets only the one in the frame of this call: the return of this call would be
// taken for that of the other.
func (p *program) refuse(full, counted string) {
	t := p.threads
	if t.slots <= mostEnded {
		p.emit(asm.Ja.Label(full)) // never reached: for the verifier
		return
	}
	slot, same, refused := p.fresh("slot"), p.fresh("same"), p.fresh("refused")
	p.step("too many have ended: is there one in this call's frame?")
	p.label(slot)
	p.emit(
		asm.Mov.Reg(rStash, asm.R2),
		asm.Add.Reg(rStash, asm.R3),
		asm.LoadMem(asm.R1, rStash, elementSlots, asm.DWord),
		asm.LoadMem(asm.R0, asm.RFP, spTag, asm.DWord),
		asm.JEq.Reg(asm.R1, asm.R0, same),
		asm.Sub.Imm(asm.R3, int32(t.slot)),
		asm.JLE.Imm(asm.R3, int32(t.last()), slot), // not below 0
		asm.Ja.Label(refused),
	)
	p.label(same)
	p.abandon()
	p.label(refused)
	p.emit(asm.Mov.Imm(asm.R5, 1), asm.Ja.Label(counted))
}

// countEnded counts the calls of this function whose return was missed, unless the
// kernel has counted those. R3 and R5 are preserved.
func (p *program) countEnded() {
	if p.skipsSides() {
		return
	}
	some, counted := p.fresh("ended"), p.fresh("counted")
	p.emit(asm.LoadMem(asm.R1, asm.RFP, spEnded, asm.DWord), asm.JNE.Imm(asm.R1, 0, some))
	p.label(counted)
	p.later(some, func() {
		p.step("count them as %s", compiler.CounterUnpaired)
		p.around(func() {
			p.counters(p.exitLabel())
			p.emit(
				asm.LoadMem(asm.R1, asm.RFP, spEnded, asm.DWord),
				asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, int16(compiler.CounterUnpaired.Offset())),
			)
		})
		p.emit(asm.Ja.Label(counted))
	})
}

// blur does not change the offset in R3, but makes the verifier forget its
// value. Otherwise it would verify all that follows once for each offset. It
// adds the difference of two loads of the element's owner, which does not
// change. It leaves that difference in R1: a 0 that the verifier does not know.
func (p *program) blur(full string) {
	p.emit(
		asm.LoadMem(asm.R0, asm.R2, elementOwner, asm.DWord),
		asm.LoadMem(asm.R1, asm.R2, elementOwner, asm.DWord),
		asm.Xor.Reg(asm.R1, asm.R0),
		asm.Add.Reg(asm.R3, asm.R1),
		asm.JGT.Imm(asm.R3, int32(p.threads.last()), full),
	)
}

// judge jumps to alive if the call with the tag in R1 is still under way.
func (p *program) judge(alive string) {
	ended, same, doubt := p.fresh("ended"), p.fresh("same"), alive
	p.later(same, func() { p.dropTwin(alive) })
	if p.threads.addresses {
		doubt = p.fresh("doubt")
		p.later(doubt, func() { p.doubt(ended, alive) })
	}
	elsewhere := doubt
	if p.skipsSides() && p.probe.Stacks.Task >= 0 {
		elsewhere = p.fresh("elsewhere")
		p.later(elsewhere, func() { p.judgeElsewhere(ended, alive) })
	}
	p.emit(
		asm.LoadMem(asm.R0, asm.RFP, spTag, asm.DWord),
		asm.JEq.Reg(asm.R1, asm.R0, ended),
		asm.Mov.Reg(asm.R4, asm.R1),
		asm.Xor.Reg(asm.R4, asm.R0),
		asm.LSh.Imm(asm.R4, 16), // without the numbers
		asm.RSh.Imm(asm.R4, 16+p.stackBits()),
		asm.JNE.Imm(asm.R4, 0, elsewhere), // on another stack
		asm.LSh.Imm(asm.R0, 16),
		asm.RSh.Imm(asm.R0, 16+classBits),
		asm.Mov.Reg(asm.R4, asm.R1),
		asm.LSh.Imm(asm.R4, 16),
		asm.RSh.Imm(asm.R4, 16+classBits),
		asm.JEq.Reg(asm.R4, asm.R0, same),  // another probe of this function, or a function that has jumped to this one
		asm.JGT.Reg(asm.R4, asm.R0, doubt), // further out
	)
	p.label(ended)
}

// dropTwin empties a slot with the tag of this call below the one at R3, which has its
// frame, and goes to alive: that of an earlier call whose return was missed. They would
// otherwise fill the slots where several probes share a frame.
func (p *program) dropTwin(alive string) {
	t := p.threads
	lower, twin, all := p.fresh("lower"), p.fresh("twin"), p.fresh("all")
	p.step("below other calls in this frame: is there one with this tag?")
	p.blur(p.exitLabel()) // or the verifier would look at this loop once for each offset
	p.emit(
		asm.StoreMem(asm.RFP, spSpill, asm.R3, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, spTag, asm.DWord),
	)
	p.label(lower)
	p.down(all)
	p.emit(
		asm.LoadMem(asm.R0, asm.R4, elementSlots, asm.DWord),
		asm.JEq.Reg(asm.R0, asm.R1, twin),
		asm.Mov.Reg(asm.R5, asm.R0),
		asm.Neg.Imm(asm.R5, 0),
		asm.Or.Reg(asm.R5, asm.R0),
		asm.ArSh.Imm(asm.R5, 63), // all bits, or 0 if the slot is empty
		asm.Xor.Reg(asm.R0, asm.R1),
		asm.LSh.Imm(asm.R0, 16), // without the numbers
		asm.RSh.Imm(asm.R0, 16+classBits),
		asm.And.Reg(asm.R0, asm.R5),
		asm.JEq.Imm(asm.R0, 0, lower),
	)
	p.label(all)
	p.emit(
		asm.LoadMem(asm.R3, asm.RFP, spSpill, asm.DWord),
		asm.JLE.Imm(asm.R3, int32(t.last()), alive),
		asm.Ja.Label(p.exitLabel()), // never: for the verifier
	)
	p.label(twin)
	p.emit(asm.Mov.Imm(asm.R0, 0), asm.StoreMem(asm.R4, elementSlots, asm.R0, asm.DWord))
	if !p.skipsSides() { // see countEnded
		p.emit(asm.LoadMem(asm.R0, asm.RFP, spEnded, asm.DWord), asm.Add.Imm(asm.R0, 1), asm.StoreMem(asm.RFP, spEnded, asm.R0, asm.DWord))
	}
	p.emit(asm.Ja.Label(all))
}

// judgeElsewhere jumps to ended if the call with the tag in R1, which is on another stack
// than this one, has ended because this one is on the stack of the task: interrupts
// end before the task goes on. If the return of a call in an interrupt was skipped, it
// would otherwise stay below calls that go on, where nothing finds it.
func (p *program) judgeElsewhere(ended, alive string) {
	p.step("on another stack: is this call on the task's?")
	p.around(p.readTaskStack)
	p.emit(
		asm.JNE.Imm(asm.R0, 0, alive),
		asm.LoadMem(asm.R1, asm.RFP, spScratch, asm.DWord),
		asm.LoadMem(asm.R0, asm.RFP, spTag, asm.DWord),
		asm.Xor.Reg(asm.R0, asm.R1),
		asm.LSh.Imm(asm.R0, 16),
		asm.RSh.Imm(asm.R0, 16+p.stackBits()),
		asm.JNE.Imm(asm.R0, 0, alive),
		asm.LoadMem(asm.R1, rStash, elementSlots, asm.DWord),
		asm.Ja.Label(ended),
	)
}

// textBits is the number of bits of an offset in the memory that has the code of
// an x86-64 kernel, its modules and its programs: the last 2 GB.
const textBits = 31

// doubt jumps to ended if the call with the tag in R1 has ended although it was
// not further down the stack than this one. With an offset of the stack that is
// random for each system call (CONFIG_RANDOMIZE_KSTACK_OFFSET), calls whose
// returns were missed would otherwise fill the slots. The frame of a call that
// goes on has its return address, or that of a trampoline.
func (p *program) doubt(ended, alive string) {
	p.step("many slots are taken: is this one's return address still there?")
	p.emit(asm.JLT.Imm(asm.R3, int32(p.threads.slots/2*p.threads.slot), alive))
	p.around(func() {
		p.emit(
			asm.Mov.Reg(asm.R3, asm.R1),
			asm.LoadImm(asm.R2, -1<<48, asm.DWord),
			asm.Or.Reg(asm.R3, asm.R2),
			asm.And.Imm(asm.R3, -1<<classBits),
		)
		p.readScratch(8)
	})
	p.emit(
		asm.JNE.Imm(asm.R0, 0, alive),
		asm.LoadMem(asm.R1, asm.RFP, spScratch, asm.DWord),
		asm.ArSh.Imm(asm.R1, textBits),
		asm.JEq.Imm(asm.R1, -1, alive),
		asm.LoadMem(asm.R1, rStash, elementSlots, asm.DWord),
		asm.Ja.Label(ended),
	)
}

// classBits is the number of bits of the class in a tag.
const classBits = 3

// stackBits returns the number of bits of an offset in a stack.
func (p *program) stackBits() int32 {
	return int32(bits.Len(uint(p.probe.Stacks.Size - 1)))
}

// abandon empties the slot at rStash, whose tag is in R1, and counts the call for
// countEnded if it was of this function. R2, R3 and R5 are preserved.
func (p *program) abandon() {
	p.step("its return was missed")
	if len(p.threads.big) > 0 {
		small := p.fresh("small")
		p.emit(
			asm.Mov.Reg(asm.R4, asm.R1),
			asm.And.Imm(asm.R4, mostBig),
			asm.JEq.Imm(asm.R4, 0, small),
			asm.StoreMem(asm.RFP, spBig+8, asm.R1, asm.DWord),
		)
		p.around(func() {
			p.emit(
				asm.FnGetCurrentTask.Call(),
				asm.StoreMem(asm.RFP, spBig, asm.R0, asm.DWord),
				asm.LoadMem(asm.R4, asm.RFP, spBig+8, asm.DWord),
			)
			p.deleteClass(p.threads, p.prefix)
		})
		p.emit(asm.LoadMem(asm.R1, asm.RFP, spBig+8, asm.DWord))
		p.label(small)
	}
	p.emit(asm.Mov.Imm(asm.R4, 0), asm.StoreMem(rStash, elementSlots, asm.R4, asm.DWord))
	if p.skipsSides() { // see countEnded
		return
	}
	p.emit(
		asm.LoadMem(asm.R4, asm.RFP, spTag, asm.DWord),
		asm.Xor.Reg(asm.R4, asm.R1),
		asm.RSh.Imm(asm.R4, 48),
		asm.Sub.Imm(asm.R4, 1),
		asm.RSh.Imm(asm.R4, 63), // 1 if the numbers are the same, else 0
		asm.LoadMem(asm.R0, asm.RFP, spEnded, asm.DWord),
		asm.Add.Reg(asm.R4, asm.R0),
		asm.StoreMem(asm.RFP, spEnded, asm.R4, asm.DWord),
	)
}

// around preserves R2, R3 and R5 across calls.
func (p *program) around(calls func()) {
	p.emit(
		asm.Mov.Reg(rBase, asm.R2),
		asm.StoreMem(asm.RFP, spSpill, asm.R3, asm.DWord),
		asm.StoreMem(asm.RFP, spSpill+8, asm.R5, asm.DWord),
	)
	calls()
	p.emit(
		asm.Mov.Reg(asm.R2, rBase),
		asm.LoadMem(asm.R3, asm.RFP, spSpill, asm.DWord),
		asm.JGT.Imm(asm.R3, int32(p.threads.last()), p.exitLabel()), // never true: for the verifier
		asm.LoadMem(asm.R5, asm.RFP, spSpill+8, asm.DWord),
	)
}

// missesReturns reports whether the kernel may skip the return of a call whose
// entry a program has seen, so that what was kept of the call is left over:
// while bpf(2) reads a map, because it can follow only so many calls at once, or in
// interrupts, see busyMap. A kprobe.session whose entry rejects the call has no return,
// except where it is repeated.
func (p *program) missesReturns() bool {
	switch p.kind {
	case compiler.Kprobe, compiler.KprobeMulti:
		return true
	case compiler.KprobeSession:
		return p.opts.Features.CancelRepeats
	}
	return p.skipsSides()
}

// forgetsStale reports whether the program keeps calls, and a rejected call must
// empty the slot that an earlier one may have left in its frame.
func (p *program) forgetsStale() bool {
	return p.side == compiler.AtEntry && p.keeps != nil && p.probe.ReturnSide() && p.missesReturns()
}

// forgetStale forgets an earlier call in the frame of a call that is rejected at
// entry. The return of the rejected call would be taken for that of the earlier one.
func (p *program) forgetStale() {
	p.step("a call is rejected: was the return of another one in its frame missed?")
	p.frame()
	p.forget(p.skipLabel())
	if p.skipsSides() { // see countEnded
		p.emit(asm.Ja.Label(p.skipLabel()))
		return
	}
	p.count(compiler.CounterUnpaired, p.skipLabel())
}
