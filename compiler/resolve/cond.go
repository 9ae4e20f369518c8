package resolve

import (
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// cond binds a condition, or its negation if negative is set.
func (b *builder) cond(c spec.Cond, negative bool) (compiler.Cond, error) {
	switch c := c.(type) {
	case *spec.Not:
		return b.cond(c.X, !negative)
	case *spec.And:
		return b.join(c.X, c.Y, negative, !negative)
	case *spec.Or:
		return b.join(c.X, c.Y, negative, negative)
	}
	return b.leaf(c.(*spec.Item), negative)
}

// join binds both sides of && or ||; all means that both must hold. By De
// Morgan's laws a negated && becomes an ||.
func (b *builder) join(x, y spec.Cond, negative, all bool) (compiler.Cond, error) {
	left, err := b.cond(x, negative)
	if err != nil {
		return nil, err
	}
	right, err := b.cond(y, negative)
	if err != nil {
		return nil, err
	}
	if all {
		return append(flatAll(left), flatAll(right)...), nil
	}
	return append(flatAny(left), flatAny(right)...), nil
}

func flatAll(t compiler.Cond) compiler.AllOf {
	if all, ok := t.(compiler.AllOf); ok {
		return all
	}
	return compiler.AllOf{t}
}

func flatAny(t compiler.Cond) compiler.AnyOf {
	if anyOf, ok := t.(compiler.AnyOf); ok {
		return anyOf
	}
	return compiler.AnyOf{t}
}

// leaf binds one predicate.
func (b *builder) leaf(item *spec.Item, negative bool) (compiler.Cond, error) {
	value, err := b.shared(item)
	if err != nil {
		return nil, err
	}
	if cond, err := b.fieldCond(item, value, negative); cond != nil || err != nil {
		return cond, err
	}
	if value.Before != nil {
		return changedLeaf(value, negative), nil
	}
	if err := b.pointerAfter(item, value); err != nil {
		return nil, err
	}
	if item, err = b.constantWith(item); err != nil {
		return nil, err
	}
	if with := b.with(item); with != nil {
		return b.compareValues(item, value, with, negative)
	}
	if cond, err := b.addressCond(item, value, negative); cond != nil || err != nil {
		return cond, err
	}
	pred, err := b.predicate(item, value)
	if err != nil {
		return nil, err
	}
	if negative {
		pred = negated(pred)
	}
	return &compiler.Leaf{Value: value, Pred: pred}, nil
}
