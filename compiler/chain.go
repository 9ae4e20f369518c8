package compiler

import "github.com/ksnoop/ksnoop/compiler/spec"

// Chain is the place of a probe in a stack of calls: an event is written for a
// call of the last level that is inside calls of all the others, on the same
// stack, and then for these.
type Chain struct {
	Level int      // from 0, the outermost
	Of    []*Probe // all levels
	// NoReturn: calls of this level have no return, so it is the last one.
	NoReturn bool
}

// longestChain bounds the levels: a program looks at each of them.
const longestChain = 64

// chain joins the probes of a plan to a stack.
func (plan *Plan) chain() error {
	n := len(plan.Probes)
	last := plan.Probes[n-1]
	if n < 2 || n > longestChain {
		return spec.Errorf(last.Trace.Text, last.Trace.Func.At, "a stack has 2 to %d functions, not %d", longestChain, n)
	}
	if last.Measure > Calls {
		return spec.Errorf(last.Trace.Text, last.Trace.Func.At, "of a stack the calls can be counted, but no %s measured", last.Measure)
	}
	for i, p := range plan.Probes {
		p.Chain = &Chain{
			Level: i, Of: plan.Probes,
			NoReturn: p.Func.Tracepoint || neverReturns[p.Func.Name],
		}
		if p.Chain.NoReturn && i < n-1 {
			return spec.Errorf(p.Trace.Text, p.Trace.Func.At, "nothing can be inside of %s, which does not return", p.Func.Name).
				WithHint("it can be the last one of the stack")
		}
		// The entries are shown when the chain is complete, and the returns
		// when they come: there is no event for both.
		p.Paired = false
		if last.Measure == NoMeasure {
			p.OnEntry = len(p.Entry) > 0 || len(p.Return) == 0
			p.OnReturn = len(p.Return) > 0
		} else {
			p.measureLevel()
		}
		if err := p.flagTests(); err != nil {
			return err
		}
	}
	return nil
}

// measureLevel leaves of a level what it takes to count the calls of the last
// one.
func (p *Probe) measureLevel() {
	last := p.Chain.last()
	p.Measure = Calls
	p.OnEntry, p.OnReturn = last && p.OnEntry, last && p.OnReturn
	if !last {
		p.First, p.ReturnTests = nil, nil
	}
	if p.First != nil && p.OnReturn && p.First.Side == AtEntry { // it is not kept
		p.First = nil
	}
	p.Entry, p.Return = nil, nil
	p.Chain.NoReturn = p.Chain.NoReturn || last && !p.OnReturn
}

// last says whether the chain is complete when the probe's function is entered.
func (c *Chain) last() bool { return c.Level == len(c.Of)-1 }

// deferred says whether the last level is known to match only at its return.
func (c *Chain) deferred() bool {
	last := c.Of[len(c.Of)-1]
	return len(last.ReturnTests) > 0 || last.Measure != NoMeasure && last.OnReturn
}

// sameAsOuter says whether a call may be one of the level outside, too.
func (c *Chain) sameAsOuter() bool {
	return c.Level > 0 && c.Of[c.Level-1].Func.Symbol == c.Of[c.Level].Func.Symbol
}
