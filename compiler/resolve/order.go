package resolve

import (
	"slices"
	"sort"

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
	p.EntryOrder, p.ReturnOrder = cheapestFirst(entry, p.EntryLoads), cheapestFirst(ret, p.ReturnLoads)
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

// cheapestFirst returns the conditions in the order of their costs.
func cheapestFirst(conds []compiler.Cond, l compiler.Loads) []compiler.Cond {
	sorted := slices.Clone(conds)
	sort.SliceStable(sorted, func(i, j int) bool { return cost(sorted[i], l) < cost(sorted[j], l) })
	return sorted
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
