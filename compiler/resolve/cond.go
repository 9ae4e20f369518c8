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
		return append(flat[compiler.AllOf](left), flat[compiler.AllOf](right)...), nil
	}
	return append(flat[compiler.AnyOf](left), flat[compiler.AnyOf](right)...), nil
}

// flat returns the parts of a condition of this kind, or the condition as the only part.
func flat[T interface {
	compiler.AllOf | compiler.AnyOf
	compiler.Cond
}](t compiler.Cond) T {
	if parts, ok := t.(T); ok {
		return parts
	}
	return T{t}
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
