package compiler

import "github.com/ksnoop/ksnoop/compiler/spec"

// Test is a condition in the form that programs evaluate: a [*Leaf], an
// [AllOf], an [AnyOf] or a [*Flag]. There is no negation: it has moved into the
// leaves, so that a value that cannot be read never makes a test hold.
type Test interface {
	side() Side
}

// Leaf is a predicate on a value.
type Leaf struct {
	Value *Value
	Pred  *Predicate
}

// AllOf holds if all of its tests do.
type AllOf []Test

// AnyOf holds if one of its tests does.
type AnyOf []Test

// Flag is the outcome of a test that was made at entry, for use at return.
type Flag struct {
	Test Test
	Bit  int // in [Layout].Flags
}

func (l *Leaf) side() Side { return l.Value.Side }
func (t AllOf) side() Side { return sideOf(t) }
func (t AnyOf) side() Side { return sideOf(t) }
func (*Flag) side() Side   { return AtReturn }

// sideOf is when all of several tests can be made.
func sideOf(tests []Test) Side {
	side := AnySide
	for _, t := range tests {
		side = max(side, t.side())
	}
	return side
}

// leaves iterates over the leaves of a test.
func leaves(t Test) func(yield func(*Leaf) bool) {
	return func(yield func(*Leaf) bool) { eachLeaf(t, yield) }
}

func eachLeaf(t Test, yield func(*Leaf) bool) bool {
	var parts []Test
	switch t := t.(type) {
	case *Leaf:
		return yield(t)
	case AllOf:
		parts = t
	case AnyOf:
		parts = t
	case *Flag:
		parts = []Test{t.Test}
	}
	for _, p := range parts {
		if !eachLeaf(p, yield) {
			return false
		}
	}
	return true
}

// test binds a condition; negative means its opposite.
func (b *builder) test(c spec.Cond, negative bool) (Test, error) {
	switch c := c.(type) {
	case *spec.Not:
		return b.test(c.X, !negative)
	case *spec.And:
		return b.join(c.X, c.Y, negative, !negative)
	case *spec.Or:
		return b.join(c.X, c.Y, negative, negative)
	}
	return b.leaf(c.(*spec.Item), negative)
}

// join binds both sides of && or ||; all means that both must hold. By De
// Morgan's laws a negated && is an ||.
func (b *builder) join(x, y spec.Cond, negative, all bool) (Test, error) {
	left, err := b.test(x, negative)
	if err != nil {
		return nil, err
	}
	right, err := b.test(y, negative)
	if err != nil {
		return nil, err
	}
	if all {
		return append(flatAll(left), flatAll(right)...), nil
	}
	return append(flatAny(left), flatAny(right)...), nil
}

func flatAll(t Test) AllOf {
	if all, ok := t.(AllOf); ok {
		return all
	}
	return AllOf{t}
}

func flatAny(t Test) AnyOf {
	if anyOf, ok := t.(AnyOf); ok {
		return anyOf
	}
	return AnyOf{t}
}

// leaf binds one predicate.
func (b *builder) leaf(item *spec.Item, negative bool) (Test, error) {
	value, err := b.shared(item)
	if err != nil {
		return nil, err
	}
	if test, err := b.fieldTest(item, value, negative); test != nil || err != nil {
		return test, err
	}
	pred, err := b.predicate(item, value)
	if err != nil {
		return nil, err
	}
	if negative {
		pred = pred.negated()
	}
	return &Leaf{Value: value, Pred: pred}, nil
}
