package compiler

import "github.com/cilium/ebpf/asm"

// storeCaller stores the frame address of the caller at a stack offset; 0 means
// that there is none.
func (p *chainProgram) storeCaller(at int) {
	if at == 0 {
		p.emit(asm.Mov.Imm(asm.R1, 0))
	} else {
		p.emit(asm.LoadMem(asm.R1, asm.RFP, int16(at), asm.DWord))
	}
	p.emit(asm.StoreMem(rOut, p.out(p.event.Layout.Caller), asm.R1, asm.DWord))
}

// complete writes the entries that are kept of the chain that the call at
// rStash ends, outermost first, if they were not written before.
func (p *chainProgram) complete() {
	at := p.room(8)
	for i, l := range p.levels[:p.chain.Level] {
		next := p.prefix + p.fresh("level")
		p.step("entry of %s", p.chain.Of[i].Func.Name)
		p.emit(
			asm.LoadMem(asm.R1, rStash, int16(chainOuter+8*i), asm.DWord),
			asm.StoreMem(asm.RFP, int16(at), asm.R1, asm.DWord),
		)
		p.findCall(l.calls, at, rBase, next)
		p.emit(asm.LoadMem(asm.R1, rBase, chainShown, asm.DWord), asm.JNE.Imm(asm.R1, 0, next))
		p.writeEntry(&l, rBase)
		p.label(next)
	}
	p.step("entry of %s", p.probe.Func.Name)
	p.writeEntry(p.own(), rStash)
}

// writeEntry writes the record that is kept of a call.
func (p *chainProgram) writeEntry(l *chainLevel, kept asm.Register) {
	p.emit(asm.Mov.Imm(asm.R1, 1), asm.StoreMem(kept, chainShown, asm.R1, asm.DWord))
	if l.entry == nil {
		return
	}
	written := p.prefix + p.fresh("written")
	lost := p.prefix + p.fresh("lost")
	number := l.entry.Number
	p.later(lost, func() {
		own := p.number
		p.number = number
		p.count(counterLost, written)
		p.number = own
	})
	size := l.entry.Layout.Size
	own := p.number
	p.number = number
	p.reserve(size, lost)
	p.number = own
	p.emit(asm.Mov.Reg(asm.R1, rOut), asm.Mov.Imm(asm.R2, int32(size)))
	p.move(asm.R3, kept, l.record)
	p.emit(asm.FnProbeReadKernel.Call())
	p.submit()
	p.label(written)
}

// writeReturn writes the event at return.
func (p *chainProgram) writeReturn() {
	ev := p.own().ret
	p.event, p.number = ev, ev.Number
	written := p.prefix + p.fresh("written")
	p.reserve(ev.Layout.Size, p.counted("lost", counterLost, written))
	p.header()
	p.emit(asm.Mov.Imm(asm.R1, 0))
	if n := p.chain.Level; n > 0 {
		p.emit(asm.LoadMem(asm.R1, rStash, int16(chainOuter+8*(n-1)), asm.DWord))
	}
	p.emit(
		asm.StoreMem(rOut, p.out(ev.Layout.Caller), asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, rStash, chainStart, asm.DWord),
		asm.StoreMem(rOut, p.out(ev.Layout.Start), asm.R1, asm.DWord),
	)
	p.clearFaults()
	p.capture(ev.Items)
	p.submit()
	p.label(written)
}

// countReturn counts the return of a call that is not shown, and its entry if
// that was not shown either.
func (p *chainProgram) countReturn() {
	own := p.own()
	if own.ret != nil {
		p.number = own.ret.Number
		next := p.prefix + p.fresh("also")
		p.count(counterFiltered, next)
		p.label(next)
	}
	if own.entry != nil {
		p.emit(asm.LoadMem(asm.R1, rStash, chainShown, asm.DWord), asm.JNE.Imm(asm.R1, 0, p.unshown()))
		p.number = own.entry.Number
		p.count(counterFiltered, p.unshown())
		return
	}
	p.emit(asm.Ja.Label(p.unshown()))
}
