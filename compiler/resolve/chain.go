package resolve

import (
	"slices"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// longestChain is the largest number of levels: a program checks each of them.
const longestChain = 64

// joinChain joins the probes of a plan into one chain of calls.
func joinChain(plan *compiler.Plan) error {
	n := len(plan.Probes)
	last := plan.Probes[n-1]
	if n < 2 || n > longestChain {
		return last.Trace.Errorf(last.Trace.Func.At, "a chain has 2 to %d functions, not %d", longestChain, n)
	}
	if last.Measure > compiler.Calls {
		return last.Trace.Errorf(last.Trace.Func.At, "the calls of a chain can be counted, but no %s can be measured", last.Measure)
	}
	for i, p := range plan.Probes {
		p.Chain = &compiler.Chain{
			Level: i, Of: plan.Probes,
			NoReturn: p.Func.Tracepoint || neverReturns[p.Func.Name],
		}
		if p.Chain.NoReturn && i < n-1 {
			return p.Trace.Errorf(p.Trace.Func.At, "%s does not return, so that it can only be the last one of a chain", p.Func.Name)
		}
		// The entries are shown when the chain is complete, and the returns
		// when they happen: no event has both.
		p.Paired = false
		if i := slices.IndexFunc(p.Entry, func(v *compiler.Value) bool { return v.Hidden }); i >= 0 {
			at := p.Trace.Func.At // if the diff is in the condition
			if n := slices.IndexFunc(p.Trace.Items, isDiff); n >= 0 {
				at = p.Trace.Items[n].Span()
			}
			return p.Trace.Errorf(at, "'diff(%s)' is of both sides of a call, and in a chain each side is an event of its own", p.Entry[i].Name).
				WithHint("after(%s) is of the return alone", p.Entry[i].Name)
		}
		if last.Measure == compiler.NoMeasure {
			p.OnEntry = len(p.Entry) > 0 || len(p.Return) == 0
			p.OnReturn = len(p.Return) > 0
		} else {
			measureLevel(p)
		}
		if err := addOutcomes(p); err != nil {
			return err
		}
	}
	return nil
}

// isDiff reports whether an item is what differs after a call.
func isDiff(item *spec.Item) bool {
	_, ok := item.Value.(*spec.Diff)
	return ok
}

// measureLevel reduces a level to what is needed to count the calls of the last
// one.
func measureLevel(p *compiler.Probe) {
	last := p.Chain.Last()
	p.Measure = compiler.Calls
	p.OnEntry, p.OnReturn = last && p.OnEntry, last && p.OnReturn
	if !last {
		p.First, p.ReturnConds = nil, nil
	}
	if p.First != nil && p.OnReturn && p.First.Side == compiler.AtEntry { // the entry value is not kept
		p.First = nil
	}
	p.Entry, p.Return = nil, nil
	p.Chain.NoReturn = p.Chain.NoReturn || last && !p.OnReturn
}
