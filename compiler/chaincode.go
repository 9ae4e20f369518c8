package compiler

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// Offsets in what is kept of a call of a chain. Behind them are the frame
// addresses of the calls that it is inside of, outermost first, then the record
// of its entry.
const (
	chainPrev  = 0  // the call of the same level that it is inside of, or 0
	chainShown = 8  // 1 if the entry was written
	chainStart = 16 // the time at entry
	chainFlags = 24 // outcomes of tests at entry
	chainOuter = 32
)

// chainRoom is what a program of a chain takes of its stack frame.
const chainRoom = 16 + 8 + 8

func (p *chainProgram) own() *chainLevel { return &p.levels[p.chain.Level] }

// enter keeps a call that is inside calls of all outer levels. In the last
// level the chain is complete.
func (p *chainProgram) enter() {
	p.beginEntry()
	p.push()
	if p.chain.last() && !p.chain.deferred() {
		p.emit(asm.Mov.Reg(rStash, rOut))
		p.complete()
	}
	if p.chain.NoReturn {
		p.emit(asm.Mov.Reg(rStash, rOut))
		p.pop()
	}
	p.end()
}

// leave forgets a call, and shows its return if its entry was shown.
func (p *chainProgram) leave() {
	p.beginReturn()
	p.recallFault()
	p.tests(p.probe.ReturnTests)
	if p.chain.last() && p.chain.deferred() {
		p.complete()
	}
	p.step("shown only if its entry was")
	p.emit(asm.LoadMem(asm.R1, rStash, chainShown, asm.DWord), asm.JEq.Imm(asm.R1, 0, p.reject()))
	if p.own().ret != nil {
		p.writeReturn()
	}
	p.label(p.unshown())
	p.pop()
	p.end()
}

// beginEntry begins the program of a call: it goes on if that is inside calls of
// all outer levels.
func (p *chainProgram) beginEntry() {
	p.begin()
	p.tests(p.probe.EntryTests)
	p.admit()
	p.setFlags()
	p.locate()
	p.findTops()
	p.findParent()
}

// beginReturn begins the program of a return: it goes on with what was kept of
// the call.
func (p *chainProgram) beginReturn() {
	p.stash = &stash{calls: p.own().calls, start: chainStart, flags: chainFlags}
	p.begin()
	p.admit()
	p.locate()
	p.step("what was kept of this call")
	p.find(p.stash, rStash, p.exitLabel())
	p.found = true
}

// locate stores the frame address, and what stack of what thread it is on.
func (p *chainProgram) locate() {
	p.key = p.room(16)
	p.step("frame address")
	p.loadFrame(asm.R1)
	p.emit(asm.StoreMem(asm.RFP, spFrame, asm.R1, asm.DWord))
	if p.kind.trampoline() { // a copy is no pointer, and may be masked
		p.move(asm.R1, asm.RFP, spFrame)
		p.emit(asm.StoreMem(asm.RFP, spScratch, rContext, asm.DWord), asm.Mov.Imm(asm.R2, 8))
		p.move(asm.R3, asm.RFP, spScratch)
		p.emit(asm.FnProbeReadKernel.Call(), asm.LoadMem(asm.R1, asm.RFP, spFrame, asm.DWord))
	}
	p.emit(
		asm.And.Imm(asm.R1, int32(-p.probe.Stacks.Size)),
		asm.StoreMem(asm.RFP, int16(p.key), asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, spPIDTID, asm.DWord),
		asm.StoreMem(asm.RFP, int16(p.key+8), asm.R1, asm.DWord),
	)
}

// lookupTops looks for the innermost calls on this stack.
func (p *chainProgram) lookupTops(missing string) {
	p.emit(mapPtr(asm.R1, topsMap))
	p.move(asm.R2, asm.RFP, p.key)
	p.emit(asm.FnMapLookupElem.Call(), asm.JEq.Imm(asm.R0, 0, missing))
}

// findTops points rStash to the innermost calls on this stack. Only a call of
// the first level begins a list of them.
func (p *chainProgram) findTops() {
	p.step("innermost calls on this stack")
	if p.chain.Level > 0 {
		p.lookupTops(p.reject())
		p.emit(asm.Mov.Reg(rStash, asm.R0))
		return
	}
	missing, found := p.prefix+p.fresh("first"), p.prefix+p.fresh("found")
	full := p.counted("full", counterNoRoom, p.skipLabel())
	p.lookupTops(missing)
	p.label(found)
	p.emit(asm.Mov.Reg(rStash, asm.R0))
	p.later(missing, func() {
		p.loadZeroes(fmt.Sprintf("zeroes%d", 8*len(p.levels)))
		p.emit(asm.Mov.Reg(asm.R3, asm.R0), mapPtr(asm.R1, topsMap))
		p.move(asm.R2, asm.RFP, p.key)
		p.emit(
			asm.Mov.Imm(asm.R4, int32(ebpf.UpdateAny)),
			asm.FnMapUpdateElem.Call(),
			asm.JNE.Imm(asm.R0, 0, full),
		)
		p.lookupTops(p.skipLabel())
		p.emit(asm.Ja.Label(found))
	})
}

// findParent finds the call of the level outside that this one is inside of: it
// is further up the stack. Others have ended, though their return was missed.
func (p *chainProgram) findParent() {
	if p.chain.Level == 0 {
		return
	}
	p.step("inside %s", p.chain.Of[p.chain.Level-1].Func.Name)
	p.parent = p.room(8)
	outer := p.levels[p.chain.Level-1]
	inside := p.prefix + p.fresh("inside")
	p.emit(
		asm.LoadMem(asm.R1, rStash, int16(8*(p.chain.Level-1)), asm.DWord),
		asm.LoadMem(asm.R2, asm.RFP, spFrame, asm.DWord),
		asm.StoreMem(asm.RFP, int16(p.parent), asm.R1, asm.DWord),
		asm.JGT.Reg(asm.R1, asm.R2, inside),
	)
	if p.chain.sameAsOuter() { // this very call: the one before it counts
		p.emit(asm.JNE.Reg(asm.R1, asm.R2, p.reject()))
		p.findCall(outer.calls, p.parent, asm.R0, p.reject())
		p.emit(
			asm.LoadMem(asm.R1, asm.R0, chainPrev, asm.DWord),
			asm.JEq.Imm(asm.R1, 0, p.reject()),
			asm.StoreMem(asm.RFP, int16(p.parent), asm.R1, asm.DWord),
		)
	} else {
		p.emit(asm.Ja.Label(p.reject()))
	}
	p.label(inside)
}

// push keeps the call and makes it the innermost one of its level.
func (p *chainProgram) push() {
	l := p.own()
	s := &stash{calls: l.calls, zeroes: l.zeroes, size: l.size}
	p.step("keep %d bytes of the call", l.size)
	p.insertZeroes(s)
	p.pushOuter()
	outermost := p.prefix + p.fresh("outermost")
	level := int16(8 * p.chain.Level)
	p.emit(
		asm.LoadMem(asm.R1, rStash, level, asm.DWord),
		asm.LoadMem(asm.R2, asm.RFP, spFrame, asm.DWord),
		asm.StoreMem(rStash, level, asm.R2, asm.DWord),
		asm.JLE.Reg(asm.R1, asm.R2, outermost), // none, or one that has ended
		asm.StoreMem(rOut, chainPrev, asm.R1, asm.DWord),
	)
	p.label(outermost)
	p.emit(asm.FnKtimeGetNs.Call(), asm.StoreMem(rOut, chainStart, asm.R0, asm.DWord))
	if len(p.probe.Flags) > 0 {
		p.emit(
			asm.LoadMem(asm.R1, asm.RFP, spFlags, asm.DWord),
			asm.StoreMem(rOut, chainFlags, asm.R1, asm.DWord),
		)
	}
	if l.entry != nil {
		p.origin = -l.record
		p.event = l.entry
		p.header()
		p.storeCaller(p.parent)
		p.capture(l.entry.Items)
	}
}

// pushOuter copies from the caller what it is inside of, and adds the caller.
func (p *chainProgram) pushOuter() {
	n := p.chain.Level
	if n == 0 {
		return
	}
	p.findCall(p.levels[n-1].calls, p.parent, rBase, p.exitLabel())
	for i := range n - 1 {
		p.emit(
			asm.LoadMem(asm.R1, rBase, int16(chainOuter+8*i), asm.DWord),
			asm.StoreMem(rOut, int16(chainOuter+8*i), asm.R1, asm.DWord),
		)
	}
	p.emit(
		asm.LoadMem(asm.R1, asm.RFP, int16(p.parent), asm.DWord),
		asm.StoreMem(rOut, int16(chainOuter+8*(n-1)), asm.R1, asm.DWord),
	)
}

// pop makes the call before the one at rStash the innermost one again.
func (p *chainProgram) pop() {
	p.step("forget the call")
	forget := p.prefix + p.fresh("forget")
	p.lookupTops(forget)
	p.emit(
		asm.LoadMem(asm.R1, rStash, chainPrev, asm.DWord),
		asm.StoreMem(asm.R0, int16(8*p.chain.Level), asm.R1, asm.DWord),
	)
	if p.chain.Level == 0 {
		p.emit(asm.JNE.Imm(asm.R1, 0, forget), mapPtr(asm.R1, topsMap))
		p.move(asm.R2, asm.RFP, p.key)
		p.emit(asm.FnMapDeleteElem.Call())
	}
	p.label(forget)
	p.delete(p.own().calls)
}
