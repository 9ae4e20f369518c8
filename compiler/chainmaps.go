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
	var measured *Event // of the whole chain
	if last := probes[len(probes)-1]; last.Measure != NoMeasure {
		measured = u.measuredChain(last, opts)
	}
	for i, p := range probes {
		l := &levels[i]
		l.calls, l.record = fmt.Sprintf("level%d", i), chainOuter+8*i
		l.size = l.record
		if p.OnEntry && measured == nil {
			l.entry = u.event(p, EntryEvent, p.Entry, extras{caller: true}, opts)
			l.size += align8(l.entry.Layout.Size)
		}
		if p.OnReturn && measured == nil {
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
			return func(c *code) {
				if measured != nil {
					generate(u.newMeasuringChain(c, p, side, kind, levels, measured, opts))
				} else {
					generate(u.newChainProgram(c, p, side, kind, levels, opts))
				}
			}
		}
		enter, leave := (*chainProgram).enter, (*chainProgram).leave
		if measured != nil {
			enter, leave = (*chainProgram).enterMeasured, (*chainProgram).leaveMeasured
		}
		u.sides(i, p, opts, side(AtEntry, p.Attach.Entry, enter), side(AtReturn, p.Attach.Return, leave))
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
