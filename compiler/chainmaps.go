package compiler

import "fmt"

// topsMap keeps for each stack the innermost call of each level.
const topsMap = "tops"

// chainProgram generates one side of one level of a chain.
type chainProgram struct {
	*program
	chain  *Chain
	levels []chainLevel
	key    int // stack offset of the key of tops: the stack and the thread
	parent int // stack offset of the frame address of the caller in the chain
}

// chainLevel is what the programs of a level share.
type chainLevel struct {
	calls, zeroes string // maps, as those of a stash
	entry, ret    *Event // nil: none
	record        int    // offset of the entry's record in what is kept
	size          int    // of what is kept
}

// addChain makes the events, maps and programs of a chain.
func (u *Unit) addChain(probes []*Probe, opts Options) {
	levels := make([]chainLevel, len(probes))
	for i, p := range probes {
		l := &levels[i]
		l.calls, l.record = fmt.Sprintf("level%d", i), chainOuter+8*i
		l.size = l.record
		if p.OnEntry {
			l.entry = u.event(p, EntryEvent, p.Entry, extras{caller: true}, opts)
			l.size += align8(l.entry.Layout.Size)
		}
		if p.OnReturn {
			l.ret = u.event(p, ReturnEvent, p.Return, extras{caller: true, start: true}, opts)
		}
		l.zeroes = u.addZeroes(l.size)
		u.Collection.Maps[l.calls] = callsMap(l.calls, l.size, opts.Features)
	}
	tops := callsMap(topsMap, 8*len(probes), opts.Features)
	tops.KeySize = 16
	u.Collection.Maps[topsMap] = tops
	u.addZeroes(8 * len(probes))
	for i, p := range probes {
		side := func(side Side, kind Kind, generate func(*chainProgram)) func(*code) {
			return func(c *code) { generate(u.newChainProgram(c, p, side, kind, levels, opts)) }
		}
		entry := side(AtEntry, p.Attach.Entry, (*chainProgram).enter)
		ret := side(AtReturn, p.Attach.Return, (*chainProgram).leave)
		u.sides(i, p, opts, entry, ret)
	}
}

func (u *Unit) newChainProgram(c *code, p *Probe, side Side, kind Kind, levels []chainLevel, opts Options) *chainProgram {
	l := levels[p.Chain.Level]
	ev := l.entry
	if ev == nil || side == AtReturn && l.ret != nil {
		ev = l.ret
	}
	cp := &chainProgram{program: u.newProgram(c, p, side, kind, ev, opts), chain: p.Chain, levels: levels}
	cp.number, cp.fixed = ev.Number, true
	cp.fates = nil
	for _, ev := range []*Event{l.entry, l.ret} {
		if ev != nil {
			cp.fates = append(cp.fates, ev.Number)
		}
	}
	if side == AtReturn {
		cp.rejected = cp.countReturn
	}
	return cp
}
