package codegen

import (
	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// Offsets in the stash of a call of a chain, after its tag. They are followed
// by the tags of the calls that the call is inside of, outermost first, then by
// the values that others are computed from at return, and by the record of its entry.
const (
	chainShown = tagSize // 1 if the entry has been written, chainLimited if the rate did not allow it
	chainStart = 16      // time at entry
	chainFlags = 24      // outcomes of conditions at entry
	chainOuter = 32
)

const chainLimited = 2

func (p *chainProgram) level() *chainLevel { return &p.levels[p.chain.Level] }

// enter keeps a call that is inside calls of all outer levels. At the last
// level the chain is complete.
func (p *chainProgram) enter() {
	p.beginEntry()
	p.push()
	if p.chain.Last() && !matchesAtReturn(p.chain) {
		p.complete()
	}
	if p.chain.NoReturn {
		p.step("nothing is kept of a call that does not return")
		p.forget(p.exitLabel())
	}
	p.end()
}

// leave forgets a call, and shows its return if its entry was shown.
func (p *chainProgram) leave() {
	p.beginReturn()
	p.conds(p.order)
	p.readClock(p.probe.Return...)
	if p.chain.Last() && matchesAtReturn(p.chain) {
		p.complete()
	}
	p.step("shown only if its entry was")
	p.emit(asm.LoadMem(asm.R1, rStash, chainShown, asm.DWord), asm.JEq.Imm(asm.R1, 0, p.reject()))
	p.limitReturn()
	if p.level().ret != nil {
		p.writeReturn()
	}
	p.drop()
	p.end()
}

// enterMeasured counts a call of the last level that is inside calls of all
// outer levels. It keeps calls of the outer levels for that.
func (p *chainProgram) enterMeasured() {
	p.beginEntry()
	if p.chain.Last() && !matchesAtReturn(p.chain) {
		p.measure()
	} else {
		p.push()
	}
	p.end()
}

// leaveMeasured forgets a call, and counts it if it is of the last level.
func (p *chainProgram) leaveMeasured() {
	p.beginReturn()
	if p.chain.Last() {
		p.conds(p.order)
		p.readClock(p.probe.Return...)
		p.measure()
	}
	p.drop()
	p.end()
}

// beginEntry begins the program at entry. It continues if the call is inside
// calls of all outer levels.
func (p *chainProgram) beginEntry() {
	p.begin()
	p.conds(p.order)
	p.admit()
	p.setOutcomes()
	p.frame()
	if p.chain.Level == 0 {
		return
	}
	p.step("inside %s", p.chain.Of[p.chain.Level-1].Func.Name)
	p.inside(p.chain.Level-1, p.reject())
}

// beginReturn begins the program at return. It continues with what was kept of
// the call.
func (p *chainProgram) beginReturn() {
	p.stash = &p.level().stash
	p.begin()
	p.admit()
	p.frame()
	p.step("what was kept of this call")
	p.findKept(p.stash, rStash, spTag, p.exitLabel())
	p.found = true
}

// push keeps the call, and points rStash to its stash entry.
func (p *chainProgram) push() {
	l := p.level()
	p.step("keep %d bytes of the call", l.size)
	p.begun(&l.stash)
	p.emit(asm.Mov.Reg(rStash, rOut), asm.Mov.Imm(asm.R1, 0), asm.StoreMem(rStash, chainShown, asm.R1, asm.DWord))
	p.pushOuter()
	if len(p.probe.Outcomes) > 0 {
		p.copyWord(rStash, chainFlags, asm.RFP, spFlags)
	}
	if l.entry == nil {
		p.emit(asm.FnKtimeGetNs.Call(), asm.StoreMem(rStash, chainStart, asm.R0, asm.DWord))
		p.keepOperands(&l.stash, nil)
		p.publish()
		return
	}
	p.origin = -l.record
	p.event = l.entry
	p.number = l.entry.Number
	p.header()
	p.copyWord(rStash, chainStart, rOut, p.out(compiler.HeaderTime))
	p.storeCaller()
	p.clearFaults()
	p.capture(l.entry.Items)
	p.keepOperands(&l.stash, l.entry.Items)
	p.publish()
}

// publish lets calls of the next level find this one. Until now, its tag had the number
// of no level: a call in an interrupt would have taken what had not been written yet.
func (p *chainProgram) publish() {
	if !p.publishes() {
		return
	}
	p.step("calls of %s may be inside this one", p.chain.Of[p.chain.Level+1].Func.Name)
	slot := rStash
	if p.level().class != 0 {
		slot = asm.R2
		p.emit(asm.LoadMem(slot, asm.RFP, spSpill, asm.DWord))
	}
	p.emit(asm.LoadMem(asm.R1, asm.RFP, spTag, asm.DWord), asm.StoreMem(slot, 0, asm.R1, asm.DWord))
}

// pushOuter copies the tags of outer calls from the caller's stash entry, and
// adds the caller.
func (p *chainProgram) pushOuter() {
	n := p.chain.Level
	if n == 0 {
		return
	}
	if n > 1 {
		p.findKept(&p.levels[n-1].stash, rBase, spNear, p.published())
		for i := range n - 1 {
			p.copyWord(rStash, int16(chainOuter+8*i), rBase, int16(chainOuter+8*i))
		}
	}
	p.copyWord(rStash, int16(chainOuter+8*(n-1)), asm.RFP, spNear)
}

// published returns the exit label of a call that is kept.
func (p *chainProgram) published() string {
	if !p.publishes() {
		return p.exitLabel()
	}
	label := p.fresh("published")
	p.later(label, func() {
		p.publish()
		p.emit(asm.Ja.Label(p.exitLabel()))
	})
	return label
}

// storeCaller stores the frame address of the caller, computed from its tag in
// the stash, or 0 if there is none.
func (p *chainProgram) storeCaller() {
	n := p.chain.Level
	if n == 0 {
		p.emit(asm.Mov.Imm(asm.R1, 0))
	} else {
		p.emit(asm.LoadMem(asm.R1, rStash, int16(chainOuter+8*(n-1)), asm.DWord))
		p.mark(n-1, p.levels[n-1].class)
	}
	p.emit(asm.StoreMem(rOut, p.out(p.event.Layout.Caller), asm.R1, asm.DWord))
}

// complete writes the kept entries of the chain that ends with the call at
// rStash, outermost first, unless they have been written before.
func (p *chainProgram) complete() {
	complete := p.limitChain()
	for i := range p.levels[:p.chain.Level] {
		l := &p.levels[i]
		next := p.fresh("level")
		p.step("entry of %s", p.chain.Of[i].Func.Name)
		p.copyWord(asm.RFP, spNear, rStash, int16(chainOuter+8*i))
		p.findKept(&l.stash, rBase, spNear, next)
		p.emit(asm.LoadMem(asm.R1, rBase, chainShown, asm.DWord), asm.JNE.Imm(asm.R1, 0, next))
		p.claim(next)
		p.writeEntry(l, rBase)
		p.label(next)
	}
	p.step("entry of %s", p.probe.Func.Name)
	p.writeEntry(p.level(), rStash)
	if complete != "" {
		p.label(complete)
	}
}

// claim continues if no other program is about to write the entry at rBase. Before Linux
// 5.12, this program may run in an interrupt of itself, too. The one in the interrupt ends
// first, and leaves the number as it was.
func (p *chainProgram) claim(other string) {
	if !p.claims() {
		return
	}
	first := p.fresh("first")
	p.emit(
		asm.Mov.Imm(asm.R1, 1),
		asm.AddAtomic.Mem(rBase, asm.R1, asm.DWord, chainShown),
		asm.LoadMem(asm.R1, rBase, chainShown, asm.DWord),
		asm.JEq.Imm(asm.R1, 1, first),
		asm.Mov.Imm(asm.R1, -1),
		asm.AddAtomic.Mem(rBase, asm.R1, asm.DWord, chainShown),
		asm.Ja.Label(other),
	)
	p.label(first)
}

// limitChain continues if the chain is one of the first in this second, and goes to the
// label that it returns otherwise. The rate is that of calls of the last level.
func (p *chainProgram) limitChain() (complete string) {
	if p.opts.Rate == 0 {
		return ""
	}
	complete = p.fresh("complete")
	l := p.level()
	ev := l.entry
	if ev == nil {
		ev = l.ret
	}
	limited := p.fresh("limited")
	p.of(ev.Number, func() { p.ask(limited) })
	p.later(limited, func() {
		p.emit(asm.Mov.Imm(asm.R1, chainLimited), asm.StoreMem(rStash, chainShown, asm.R1, asm.DWord))
		if l.entry == nil {
			p.emit(asm.Ja.Label(complete))
			return
		}
		p.of(l.entry.Number, func() { p.countLimited(complete) })
	})
	return complete
}

// limitReturn drops a call whose chain was not one of the first in its second. R1 has
// the word at chainShown.
func (p *chainProgram) limitReturn() {
	if p.opts.Rate == 0 || !p.chain.Last() {
		return
	}
	drop, limited := p.prefix+"drop", p.fresh("limitedreturn")
	if p.level().ret == nil {
		p.emit(asm.JEq.Imm(asm.R1, chainLimited, drop))
		return
	}
	p.emit(asm.JEq.Imm(asm.R1, chainLimited, limited))
	p.later(limited, func() { p.of(p.level().ret.Number, func() { p.countLimited(drop) }) })
}

// writeEntry writes the record of a call's entry that is kept.
func (p *chainProgram) writeEntry(l *chainLevel, kept asm.Register) {
	p.emit(asm.Mov.Imm(asm.R1, 1), asm.StoreMem(kept, chainShown, asm.R1, asm.DWord))
	if l.entry == nil {
		return
	}
	p.of(l.entry.Number, func() {
		written := p.fresh("written")
		size := l.entry.Layout.Size
		p.countMatched()
		p.reserve(size, p.counted("lost", compiler.CounterLost, written))
		p.emit(asm.Mov.Reg(rOut, asm.R0))
		p.origin = 0
		p.copyKept(0, kept, l.record, size)
		p.submit()
		p.label(written)
	})
}

// writeReturn writes the event at return.
func (p *chainProgram) writeReturn() {
	p.event = p.level().ret
	p.of(p.event.Number, func() {
		p.record(p.event.Items, func() {
			p.header()
			p.storeCaller()
			p.copyWord(rOut, p.out(p.event.Layout.Start), rStash, chainStart)
			p.clearFaults()
		})
	})
}

// countReturn counts the return of a call that is not shown, and its entry if
// that was not shown either.
func (p *chainProgram) countReturn() {
	l := p.level()
	if l.ret != nil {
		p.of(l.ret.Number, func() {
			next := p.fresh("also")
			p.count(compiler.CounterFiltered, next)
			p.label(next)
		})
	}
	if l.entry == nil {
		p.emit(asm.Ja.Label(p.unshown()))
		return
	}
	p.emit(asm.LoadMem(asm.R1, rStash, chainShown, asm.DWord), asm.JNE.Imm(asm.R1, 0, p.unshown()))
	p.of(l.entry.Number, func() { p.count(compiler.CounterFiltered, p.unshown()) })
}
