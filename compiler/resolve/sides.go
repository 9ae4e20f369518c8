package resolve

import (
	"slices"

	"github.com/ksnoop/ksnoop/compiler"
)

// settle assigns values and conditions to the two sides of a call. Those that are
// available on both belong to the entry, unless the spec uses other values of the
// return only, and none of them with 'after' or 'diff'.
func settle(p *compiler.Probe, values []*compiler.Value, conds compiler.AllOf) {
	whole := slices.AppendSeq(slices.Clone(values), compiler.LeafValues(conds))
	var used []*compiler.Value
	for _, v := range whole {
		used = slices.AppendSeq(used, v.Values)
	}
	var entry, ret, free bool
	for _, v := range used {
		entry = entry || v.Side == compiler.AtEntry
		ret = ret || v.Side == compiler.AtReturn
		free = free || v.Side == compiler.AnySide
		p.Timed = p.Timed || v.Base.Builtin == compiler.Duration
	}
	entry = entry || free && asksOver(p.Trace)
	for _, v := range used {
		if v.Side == compiler.AnySide && ret && !entry {
			v.Side = compiler.AtReturn
		} else if v.Side == compiler.AnySide {
			v.Side = compiler.AtEntry
		}
	}
	settleSides(whole)
	deal(p, values, conds)
	p.Paired = entry && ret && (len(conds) > 0 || ofBothSides(values) || asksOver(p.Trace))
	p.OnEntry = !p.Paired && (entry || !ret)
	p.OnReturn = p.Paired || ret
}

// deal assigns values and conditions to their sides.
func deal(p *compiler.Probe, values []*compiler.Value, conds compiler.AllOf) {
	for _, v := range values {
		if v.Side == compiler.AtReturn {
			p.Return = append(p.Return, v)
		} else {
			p.Entry = append(p.Entry, v)
		}
	}
	for _, t := range conds {
		if t.Side() == compiler.AtReturn {
			p.ReturnConds = append(p.ReturnConds, t)
		} else {
			p.EntryConds = append(p.EntryConds, t)
		}
	}
}

// settleSides sets the sides of computed values.
func settleSides(values []*compiler.Value) {
	for _, v := range values {
		settleSide(v)
	}
}

// settleSide sets the side of a computed value to the latest of the values that it
// is computed from.
func settleSide(v *compiler.Value) compiler.Side {
	if of := v.Base.Of; of != nil {
		v.Side = max(settleSide(of.X), settleSide(of.Y))
	}
	return v.Side
}

// ofBothSides reports whether one of the values is computed from what belongs to the
// entry and from what belongs to the return.
func ofBothSides(values []*compiler.Value) bool {
	return slices.ContainsFunc(values, func(v *compiler.Value) bool { return v.Side == compiler.AtReturn && len(appendKept(nil, v)) > 0 })
}

// appendKept appends the values of the entry that a value at return is computed from.
func appendKept(values []*compiler.Value, v *compiler.Value) []*compiler.Value {
	switch of := v.Base.Of; {
	case v.Base.Number != nil || slices.Contains(values, v):
		return values
	case v.Side == compiler.AtEntry:
		return append(values, v)
	case v.Base.Kept != nil:
		return appendKept(values, v.Base.Kept)
	case of != nil:
		return appendKept(appendKept(values, of.X), of.Y)
	}
	return values
}

// findOperands sets the operands and the diffs of a probe, once it is known what the
// probe shows, measures and has conditions on.
func findOperands(p *compiler.Probe) {
	p.Operands, p.Diffs = nil, nil
	late := slices.Concat(p.Return, []*compiler.Value{p.Measured, p.First})
	for _, v := range slices.AppendSeq(late, compiler.LeafValues(compiler.AllOf(p.ReturnConds))) {
		if v != nil && v.Side == compiler.AtReturn {
			p.Operands = appendKept(p.Operands, v)
		}
		if v != nil && v.Before != nil && !slices.Contains(p.Diffs, v) {
			p.Diffs = append(p.Diffs, v)
		}
	}
}

// mostOperands bounds [compiler.Probe.Operands]: each has a bit of a word.
const mostOperands = 64

// decide chooses how to attach, what to keep from entry until return, and what the
// programs do.
func decide(p *compiler.Probe, f compiler.Features, force compiler.Kind, counts programCounts) error {
	findOperands(p)
	if n := len(p.Operands); n > mostOperands {
		return p.Trace.Errorf(p.Trace.Func.At, "%d values of the entry are compared or computed with values of the return, and %d is the limit", n, mostOperands)
	}
	if p.Follow != nil && p.Follow.Role == compiler.Joins && force == compiler.KprobeMulti && f.SessionIsReturn != 0 {
		force = compiler.KprobeSession // no return side runs for calls with other objects
	}
	attach, err := chooseAttach(p, f, force, counts)
	if err != nil {
		return err
	}
	attach.Joined = !ownLink(p) && counts.functions > manyFunctions && (attach.Entry.Multi() || attach.Return.Multi())
	p.Attach = attach
	if err := keep(p); err != nil {
		return err
	}
	settlePrograms(p)
	return nil
}

// keep decides whether a probe outside of a chain keeps something until return, and
// which conditions at return then are outcomes.
func keep(p *compiler.Probe) error {
	if p.Chain != nil {
		return nil
	}
	p.Stash = p.Timed || p.Follow != nil && p.Follow.Role == compiler.Joins || p.Paired && !(p.Attach.Return == compiler.Fexit && entryInRegisters(p))
	if !p.Stash {
		return nil
	}
	return addOutcomes(p)
}

// mostOwnLinks is the number of the first arguments for which the functions that get a
// followed object have links of their own.
const mostOwnLinks = 2

// ownLink reports whether the functions that get an object as this argument have a link
// of their own even where there are many: there a call with another object costs least.
// Few functions get it as a later argument. They share a link, which looks at all of these,
// as each link takes some 14 million instructions to attach.
func ownLink(p *compiler.Probe) bool {
	f := p.Follow
	return f != nil && (f.Role == compiler.Meets || f.Role == compiler.Ends) && f.Object.Base.Param.Words[0].Slot < mostOwnLinks
}

// withOutcomes replaces the parts of a return condition that concern the entry by outcomes.
// It replaces the largest possible parts, so that they are few.
func withOutcomes(p *compiler.Probe, t compiler.Cond) compiler.Cond {
	if t.Side() == compiler.AtEntry {
		f := &compiler.Outcome{Cond: t, Bit: len(p.Outcomes)}
		p.Outcomes = append(p.Outcomes, f)
		return f
	}
	switch t := t.(type) {
	case compiler.AllOf:
		entry, rest := bySide(t)
		if len(entry) > 0 {
			return append(compiler.AllOf{withOutcomes(p, compiler.AllOf(entry))}, eachWithOutcomes(p, rest)...)
		}
		return compiler.AllOf(eachWithOutcomes(p, rest))
	case compiler.AnyOf:
		entry, rest := bySide(t)
		if len(entry) > 0 {
			return append(compiler.AnyOf{withOutcomes(p, compiler.AnyOf(entry))}, eachWithOutcomes(p, rest)...)
		}
		return compiler.AnyOf(eachWithOutcomes(p, rest))
	}
	return t
}

func eachWithOutcomes(p *compiler.Probe, conds []compiler.Cond) []compiler.Cond {
	for i, t := range conds {
		conds[i] = withOutcomes(p, t)
	}
	return conds
}

// bySide separates the conditions that can be evaluated at entry from the others.
func bySide(conds []compiler.Cond) (entry, rest []compiler.Cond) {
	for _, t := range conds {
		if t.Side() == compiler.AtEntry {
			entry = append(entry, t)
		} else {
			rest = append(rest, t)
		}
	}
	return entry, rest
}

// addOutcomes makes outcomes of the entry parts of all return conditions.
func addOutcomes(p *compiler.Probe) error {
	eachWithOutcomes(p, p.ReturnConds)
	if n := len(p.Outcomes); n > compiler.MostOutcomes {
		return p.Trace.Errorf(p.Trace.Cond.Span(), "the condition joins entry and return in %d places, and %d is the limit", n, compiler.MostOutcomes)
	}
	return nil
}
