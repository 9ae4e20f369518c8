package compiler

import (
	"slices"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// Operation is a number that is computed from two values. Its result has 64 bits,
// extended from the type of the value that begins with it.
type Operation struct {
	Op spec.Operator
	// Compare is set if the operation is a comparison, and Op is 0 then. The result
	// is only checked for being nonzero, which means that the comparison holds.
	Compare spec.Op
	X, Y    *Value
	// Type is the type that both values are converted to. A number to shift by
	// is not converted.
	Type Scalar
}

// Values iterates over the value, those that it is computed from, except constants,
// and the one that it is compared with.
func (v *Value) Values(yield func(*Value) bool) { v.each(yield) }

func (v *Value) each(yield func(*Value) bool) bool {
	if v.Base.Number != nil {
		return true
	}
	of := v.Base.Of
	for _, early := range []*Value{v.Base.Kept, v.Before} {
		if early != nil && !yield(early) {
			return false
		}
	}
	return yield(v) && (of == nil || of.X.each(yield) && of.Y.each(yield))
}

// Uses reports whether a value is one of these builtins, or computed from one.
func (v *Value) Uses(builtins ...Builtin) bool {
	for o := range v.Values {
		if slices.Contains(builtins, o.Base.Builtin) {
			return true
		}
	}
	return false
}

// MostNested bounds [Value.Nested]: programs can keep this many numbers aside.
const MostNested = 8

// Nested returns how many numbers must be kept aside to compute a value.
func (v *Value) Nested() int {
	of := v.Base.Of
	switch {
	case of == nil:
		return 0
	case of.Y.Base.Number != nil:
		return of.X.Nested()
	}
	return max(of.X.Nested(), 1+of.Y.Nested())
}
