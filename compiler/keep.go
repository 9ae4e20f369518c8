package compiler

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// keep stores what is wanted of the entry.
func (p *program) keep(s *stash) {
	p.frame()
	p.event = s.event
	if s.size <= smallStash {
		p.keepSmall(s, p.room(s.size))
	} else {
		p.keepInPlace(s)
	}
}

// keepSmall puts the value together on the stack and inserts it.
func (p *program) keepSmall(s *stash, at int) {
	p.step("values of %d bytes to keep", s.size)
	p.emit(asm.Mov.Imm(asm.R1, 0))
	for i := 0; i < s.size; i += 8 {
		p.emit(asm.StoreMem(asm.RFP, int16(at+i), asm.R1, asm.DWord))
	}
	p.move(rOut, asm.RFP, at)
	p.keepValues(s)
	p.step("keep them")
	p.insert(s, func() { p.move(asm.R3, asm.RFP, at) }, p.exitLabel())
}

// keepInPlace inserts zeroes and fills them in place: a per-CPU buffer would be
// overwritten when the task is preempted.
func (p *program) keepInPlace(s *stash) {
	p.step("new stash entry of %d bytes", s.size)
	p.insertZeroes(s)
	p.keepValues(s)
}

// insertZeroes points rOut to a new value of zeroes.
func (p *program) insertZeroes(s *stash) {
	p.loadZeroes(s.zeroes)
	p.emit(asm.Mov.Reg(rBase, asm.R0))
	inserted := p.prefix + p.fresh("inserted")
	p.insert(s, func() { p.emit(asm.Mov.Reg(asm.R3, rBase)) }, inserted)
	p.label(inserted)
	p.find(s, rOut, p.skipLabel())
}

// loadZeroes points R0 to zeroes.
func (p *program) loadZeroes(name string) {
	p.emit(asm.StoreImm(asm.RFP, spKey, 0, asm.Word), mapPtr(asm.R1, name))
	p.move(asm.R2, asm.RFP, spKey)
	p.emit(asm.FnMapLookupElem.Call(), asm.JEq.Imm(asm.R0, 0, p.skipLabel()))
}

// keepValues fills the value that rOut points to.
func (p *program) keepValues(s *stash) {
	p.origin = s.origin
	if start := s.event.Layout.Start; start != 0 {
		p.emit(asm.FnKtimeGetNs.Call(), asm.StoreMem(rOut, p.out(start), asm.R0, asm.DWord))
	}
	if flags := s.event.Layout.Flags; flags != 0 {
		p.emit(
			asm.LoadMem(asm.R1, asm.RFP, spFlags, asm.DWord),
			asm.StoreMem(rOut, p.out(flags), asm.R1, asm.DWord),
		)
	}
	p.capture(s.event.kept())
}

// eexist is the error of a key that is there.
const eexist = -17

// insert adds the value that load puts into R3 and goes to done. A value that
// is there already is of a call whose return was missed.
func (p *program) insert(s *stash, load func(), done string) {
	full := p.counted("full", counterNoRoom, p.notKept())
	p.update(s, load, ebpf.UpdateNoExist)
	stale := p.prefix + p.fresh("stale")
	p.later(stale, func() {
		p.step("the place of a call whose return was missed")
		p.emit(asm.JNE.Imm(asm.R0, eexist, full))
		// It goes first: if there is no memory just now for a new one, it
		// must not be there when this call returns.
		p.delete(s.calls)
		p.update(s, load, ebpf.UpdateNoExist)
		p.emit(asm.JNE.Imm(asm.R0, 0, full))
		p.count(counterUnpaired, done)
	})
	p.emit(asm.JNE.Imm(asm.R0, 0, stale))
}

func (p *program) update(s *stash, load func(), flags ebpf.MapUpdateFlags) {
	load()
	p.emit(mapPtr(asm.R1, s.calls))
	p.move(asm.R2, asm.RFP, spFrame)
	p.emit(asm.Mov.Imm(asm.R4, int32(flags)), asm.FnMapUpdateElem.Call())
}
