package resolve

import (
	"slices"

	"github.com/ksnoop/ksnoop/compiler"
)

// settlePrograms decides what the programs of a probe read by plain loads, and in which
// order they evaluate the conditions. The attach kind and the outcomes must be known.
func settlePrograms(p *compiler.Probe) {
	p.EntryLoads, p.ReturnLoads = loads(p.Attach.Entry, p), loads(p.Attach.Return, p)
	entry, ret := p.EntryConds, p.ReturnConds
	if decidesAlone(p) {
		entry = slices.Concat(entry, ret)
		ret = entry
	}
	for i, f := range p.Outcomes {
		p.Outcomes[i] = &compiler.Outcome{Cond: guarded(f.Cond, p.EntryLoads), Bit: f.Bit}
	}
	p.EntryOrder, p.ReturnOrder = guardsFirst(entry, p.EntryLoads), guardsFirst(ret, p.ReturnLoads)
}

// loads returns what the programs of a kind read by plain loads. Arguments of
// tracepoints may be NULL, and the verifier would not let a program test for that
// (6.13).
func loads(kind compiler.Kind, p *compiler.Probe) compiler.Loads {
	return compiler.Loads{
		Arguments: kind == compiler.Fentry || kind == compiler.Fexit,
		Kept:      kind == compiler.Fexit && !readsStash(p),
	}
}

// readsStash reports whether the program at return takes values from a stash.
func readsStash(p *compiler.Probe) bool {
	return p.Chain != nil || p.Stash && !onePoint(p)
}

// onePoint reports whether a probe has a program on one side only, which is a point of
// a span, or follows or ends objects.
func onePoint(p *compiler.Probe) bool {
	return p.Span != nil || p.Follow != nil && p.Follow.Role != compiler.Joins
}

// decidesAlone reports whether one program evaluates the conditions of both sides.
func decidesAlone(p *compiler.Probe) bool {
	return onePoint(p) || p.Paired && !p.Stash
}

// guardsFirst returns the conditions in this order: those that cannot meet a fault, the
// cheapest of them first, and then the others as in the spec, where one may guard the
// next. It orders the parts of each condition in the same way.
func guardsFirst(conds []compiler.Cond, l compiler.Loads) []compiler.Cond {
	sorted := slices.Clone(conds)
	for i, t := range sorted {
		sorted[i] = guarded(t, l)
		for ; i > 0 && overtakes(sorted[i], sorted[i-1], l); i-- {
			sorted[i], sorted[i-1] = sorted[i-1], sorted[i]
		}
	}
	return sorted
}

// guarded returns a condition with its parts in order.
func guarded(t compiler.Cond, l compiler.Loads) compiler.Cond {
	switch t := t.(type) {
	case compiler.AllOf:
		return compiler.AllOf(guardsFirst(t, l))
	case compiler.AnyOf:
		ordered := slices.Clone(t)
		for i := range ordered {
			ordered[i] = guarded(t[i], l)
		}
		return ordered
	}
	return t
}

// overtakes reports whether t, which the spec has after u, is evaluated before it. A
// fault of t that u would have hidden must not make a call count as unreadable.
func overtakes(t, u compiler.Cond, l compiler.Loads) bool {
	if !compiler.MayFault(t) {
		return compiler.MayFault(u) || cost(t, l) < cost(u, l)
	}
	return faultsWith(t, u) && cost(t, l) < cost(u, l)
}

// faultsWith reports whether u meets a fault wherever t does, because it reads the same on
// its way.
func faultsWith(t, u compiler.Cond) bool {
	first, ok := t.(*compiler.Leaf)
	second, also := u.(*compiler.Leaf)
	if !ok || !also || first.Pred.Pattern != nil || first.Value.Before != nil {
		return false
	}
	a, b := first.Value, second.Value
	x, y := a.Base, b.Base
	return x.Param == y.Param && x.Word == y.Word && x.Addr == y.Addr && x.PerCPU == y.PerCPU && x.Builtin == y.Builtin &&
		x.Of == y.Of && x.Kept == y.Kept && len(a.Path) <= len(b.Path) && slices.Equal(a.Path, b.Path[:len(a.Path)])
}

// cost returns the cost of reading the values of a condition: a helper costs as much as
// many plain loads, and a string more than any number.
func cost(t compiler.Cond, loads compiler.Loads) int {
	total := 0
	for l := range compiler.Leaves(t) {
		switch {
		case l.Pred.Pattern != nil:
			total += 1000
		case loads.Read(l.Value):
			total += len(l.Value.Path)
		default:
			total += 100 * len(l.Value.Path)
		}
	}
	return total
}
