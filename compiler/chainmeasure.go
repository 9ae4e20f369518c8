package compiler

// measuredChain makes the one event of a chain whose calls are counted: those of
// the last function.
func (u *Unit) measuredChain(last *Probe, opts Options) *Event {
	kind := EntryEvent
	if last.OnReturn {
		kind = ReturnEvent
	}
	return u.event(last, kind, nil, extras{}, opts)
}

// newMeasuringChain begins a program of such a chain. Calls that are not inside
// of one another count for the last level alone.
func (u *Unit) newMeasuringChain(c *code, p *Probe, side Side, kind Kind, levels []chainLevel, ev *Event, opts Options) *chainProgram {
	cp := &chainProgram{program: u.newProgram(c, p, side, kind, ev, opts), chain: p.Chain, levels: levels}
	cp.number, cp.fixed = ev.Number, true
	cp.fates = nil
	if p.Chain.last() {
		cp.fates = []int{ev.Number}
	}
	if side == AtReturn {
		cp.rejected = func() { cp.countEach(counterFiltered, cp.unshown()) }
	}
	return cp
}

// enterMeasured counts a call of the last level that is inside calls of all
// outer levels, which are kept for that.
func (p *chainProgram) enterMeasured() {
	p.beginEntry()
	if p.chain.last() && !p.chain.deferred() {
		p.measure()
	} else {
		p.push()
	}
	p.end()
}

// leaveMeasured forgets a call, and counts one of the last level.
func (p *chainProgram) leaveMeasured() {
	p.beginReturn()
	if p.chain.last() {
		p.recallFault()
		p.tests(p.probe.ReturnTests)
		p.measure()
	}
	p.label(p.unshown())
	p.pop()
	p.end()
}
