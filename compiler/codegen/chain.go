package codegen

import (
	"github.com/ksnoop/ksnoop/compiler"
)

// chainProgram generates one side of one level of a chain.
type chainProgram struct {
	*program
	chain  *compiler.Chain
	levels []chainLevel
}

// chainLevel is the state that the programs of a level share.
type chainLevel struct {
	stash
	entry, ret *compiler.EventType // nil if there is none
	record     int                 // offset of the entry's record in the stash
}

// addChain creates the events of a chain and returns functions that generate
// its programs.
func (u *generator) addChain(probes []*compiler.Probe, opts options) (generate []func()) {
	levels := make([]chainLevel, len(probes))
	var measured *compiler.EventType // event of the whole chain
	if last := probes[len(probes)-1]; last.Measure != compiler.NoMeasure {
		measured = u.measuredChain(last, opts)
	}
	for i, p := range probes {
		l := &levels[i]
		l.start, l.flags, l.record = chainStart, chainFlags, chainOuter+8*i
		l.size = l.record
		if n := len(p.Operands); n > 0 {
			l.operands = l.record
			l.record += 8 + 8*n
			l.size = l.record
		}
		if p.OnEntry && measured == nil {
			l.entry = u.event(p, compiler.EntryEvent, p.Entry, extras{caller: true}, opts)
			l.size += compiler.Align8(l.entry.Layout.Size)
		}
		if p.OnReturn && measured == nil {
			l.ret = u.event(p, compiler.ReturnEvent, p.Return, extras{caller: true, start: true}, opts)
		}
		u.stashes = append(u.stashes, &l.stash)
	}
	for i, p := range probes {
		side := func(side compiler.Side, kind compiler.Kind, generate func(*chainProgram)) func(*code) {
			return func(c *code) { generate(u.newChainProgram(c, p, side, kind, levels, measured, opts)) }
		}
		enter, leave := (*chainProgram).enter, (*chainProgram).leave
		if measured != nil {
			enter, leave = (*chainProgram).enterMeasured, (*chainProgram).leaveMeasured
		}
		generate = append(generate, func() {
			u.sides(i, p, opts, side(compiler.AtEntry, p.Attach.Entry, enter), side(compiler.AtReturn, p.Attach.Return, leave))
		})
	}
	return generate
}

// measuredChain creates the one event of a chain whose calls are counted: the
// calls of the last function.
func (u *generator) measuredChain(last *compiler.Probe, opts options) *compiler.EventType {
	kind := compiler.EntryEvent
	if last.OnReturn {
		kind = compiler.ReturnEvent
	}
	return u.event(last, kind, nil, extras{}, opts)
}

// newChainProgram begins a program. If the chain is measured, rejected calls are
// counted at the last level only.
func (u *generator) newChainProgram(c *code, p *compiler.Probe, side compiler.Side, kind compiler.Kind, levels []chainLevel, measured *compiler.EventType, opts options) *chainProgram {
	l := &levels[p.Chain.Level]
	ev := l.entry
	if ev == nil || side == compiler.AtReturn && l.ret != nil {
		ev = l.ret
	}
	if measured != nil {
		ev = measured
	}
	cp := &chainProgram{program: u.newProgram(c, p, side, kind, ev, opts), chain: p.Chain, levels: levels}
	cp.number, cp.fixed, cp.function = ev.Number, true, p.Chain.Level
	cp.fates = nil
	if side == compiler.AtEntry {
		cp.keeps = &l.stash
	}
	switch {
	case measured == nil:
		for _, ev := range []*compiler.EventType{l.entry, l.ret} {
			if ev != nil {
				cp.fates = append(cp.fates, ev.Number)
			}
		}
	case p.Chain.Last():
		cp.fates = []int{ev.Number}
	}
	if side == compiler.AtReturn && measured == nil {
		cp.rejected = cp.countReturn
	} else if side == compiler.AtReturn {
		cp.rejected = func() { cp.countEach(compiler.CounterFiltered, cp.unshown()) }
	}
	return cp
}

// matchesAtReturn reports whether it is known only at return whether a call of the
// last level matches.
func matchesAtReturn(c *compiler.Chain) bool {
	last := c.Of[len(c.Of)-1]
	return len(last.ReturnConds) > 0 || last.Measure != compiler.NoMeasure && last.OnReturn
}

// publishes reports whether calls of the next level of a chain look for what the program
// keeps.
func (p *program) publishes() bool {
	return p.side == compiler.AtEntry && p.probe.Chain != nil && !p.probe.Chain.Last()
}

// claims reports whether a program of a chain may run in an interrupt of itself.
func (p *program) claims() bool {
	return p.probe.Chain != nil && p.kind.Trampoline() && !p.opts.Features.CountsSkipped
}
