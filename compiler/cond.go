package compiler

import (
	"cmp"
	"slices"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// Cond is a condition in the form that programs evaluate: a [*Leaf], an
// [AllOf], an [AnyOf] or a [*Outcome]. There is no negation: it is pushed down
// into the leaves, so that a value that cannot be read never makes a condition hold.
type Cond interface {
	// Side is the side of a call at which the condition can be evaluated.
	Side() Side
}

// Leaf is a predicate on a value.
type Leaf struct {
	Value *Value
	Pred  *Predicate
}

// AllOf holds if all of its conditions do.
type AllOf []Cond

// AnyOf holds if one of its conditions does.
type AnyOf []Cond

// Outcome is the result of a condition that was evaluated at entry, for use at return.
type Outcome struct {
	Cond Cond
	// Bit is the number of the bit in [Layout].Outcomes that is set if the condition held.
	// The one that is MostOutcomes higher is set if a fault has left it open.
	Bit int
}

// Side returns the side of a call at which the condition can be evaluated.
func (l *Leaf) Side() Side  { return l.Value.Side }
func (t AllOf) Side() Side  { return sideOf(t) }
func (t AnyOf) Side() Side  { return sideOf(t) }
func (*Outcome) Side() Side { return AtReturn }

// sideOf returns the side at which all conditions can be evaluated.
func sideOf(conds []Cond) Side {
	side := AnySide
	for _, t := range conds {
		side = max(side, t.Side())
	}
	return side
}

// Leaves iterates over the leaves of a condition.
func Leaves(t Cond) func(yield func(*Leaf) bool) {
	return func(yield func(*Leaf) bool) { eachLeaf(t, yield) }
}

// LeafValues iterates over the values of the leaves of a condition.
func LeafValues(t Cond) func(yield func(*Value) bool) {
	return func(yield func(*Value) bool) {
		eachLeaf(t, func(l *Leaf) bool { return yield(l.Value) })
	}
}

func eachLeaf(t Cond, yield func(*Leaf) bool) bool {
	var parts []Cond
	switch t := t.(type) {
	case *Leaf:
		return yield(t)
	case AllOf:
		parts = t
	case AnyOf:
		parts = t
	case *Outcome:
		parts = []Cond{t.Cond}
	}
	for _, p := range parts {
		if !eachLeaf(p, yield) {
			return false
		}
	}
	return true
}

// MayFault reports whether a value in a condition may be one that cannot be read.
func MayFault(t Cond) bool {
	for l := range Leaves(t) {
		if l.Pred.Pattern != nil && l.Value.Text != NoText || l.Value.mayFault() {
			return true
		}
	}
	return false
}

// MostOutcomes bounds [Probe].Outcomes: each has two bits of a word.
const MostOutcomes = 32

// Predicate is a comparison of a value. A number is extended to 64 bits and compared
// with a constant, also for common bits ([spec.Mask]). A string is compared with
// another, or matched with a pattern.
type Predicate struct {
	Text   string // as in the spec: skb->len > 100
	Op     spec.Op
	Not    bool // negates Mask, Glob and Ranges
	Signed bool
	Const  uint64 // two's complement if Signed
	// Ranges are the ranges of which a number must be in one, or in none if Not
	// is set. If nil, the number is compared with Const.
	Ranges []Range
	// Pattern is the pattern to compare a string with, for [spec.Eq], [spec.Ne] and
	// [spec.Glob]. It is nil for numbers.
	Pattern *Pattern
}

// Holds reports whether the predicate is true of the number v.
func (p *Predicate) Holds(v uint64) bool {
	switch {
	case p.Ranges != nil:
		return p.Not != slices.ContainsFunc(p.Ranges, func(r Range) bool { return r.Low <= v && v <= r.High })
	case p.Op == spec.Mask:
		return (v&p.Const != 0) != p.Not
	case p.Signed:
		return p.Op.Holds(cmp.Compare(int64(v), int64(p.Const)))
	}
	return p.Op.Holds(cmp.Compare(v, p.Const))
}

// Opposites maps each comparison to its negation.
var Opposites = map[spec.Op]spec.Op{
	spec.Eq: spec.Ne, spec.Ne: spec.Eq, spec.Lt: spec.Ge, spec.Ge: spec.Lt, spec.Gt: spec.Le, spec.Le: spec.Gt,
}

// Range is the range of numbers from Low to High inclusive.
type Range struct{ Low, High uint64 }

// Pattern is a string to compare strings with, or a glob of stars and sets.
type Pattern struct {
	Text string // without quotes and escapes
	Glob bool
	// Elements match one character each.
	Elements []spec.GlobElement
	// Stars has bit i set if any number of characters may precede element i,
	// or, for the bit after the last element, follow at the end.
	Stars uint64
}

// Matches reports whether the pattern matches the whole string.
func (p *Pattern) Matches(s string) bool {
	if !p.Glob {
		return s == p.Text
	}
	state := uint64(1)
	for i := range len(s) {
		var m uint64
		for j, e := range p.Elements {
			if state>>j&1 != 0 && e.Match(s[i]) {
				m |= 1 << j
			}
		}
		if state = m<<1 | state&p.Stars; state == 0 {
			return false // as for most symbols after the first letter
		}
	}
	return state>>len(p.Elements)&1 == 1
}
