package compiler

import (
	"math"
	"slices"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// Predicate is a test of a value. Of a number, extended to 64 bits, it is a
// comparison with a constant, or whether they have a bit in common ([spec.Mask]).
// Of a string it is whether it equals or matches a pattern.
type Predicate struct {
	Text   string // as in the spec: skb->len > 100
	Op     spec.Op
	Not    bool // of Mask, Glob and Ranges: the opposite
	Signed bool
	Const  uint64 // two's complement if Signed
	// Ranges are what a number is in one of, or with Not in none; nil: it is
	// compared with Const.
	Ranges []Range
	// Pattern is what a string is compared with, for [spec.Eq], [spec.Ne]
	// and [spec.Glob]; nil for numbers.
	Pattern *Pattern
}

// holds says whether the predicate is true of the number v.
func (p *Predicate) holds(v uint64) bool {
	less := v < p.Const
	if p.Signed {
		less = int64(v) < int64(p.Const)
	}
	if p.Ranges != nil {
		return p.Not != slices.ContainsFunc(p.Ranges, func(r Range) bool { return r.Low <= v && v <= r.High })
	}
	switch p.Op {
	case spec.Eq:
		return v == p.Const
	case spec.Ne:
		return v != p.Const
	case spec.Lt:
		return less
	case spec.Le:
		return less || v == p.Const
	case spec.Gt:
		return !less && v != p.Const
	case spec.Mask:
		return (v&p.Const != 0) != p.Not
	default:
		return !less
	}
}

// opposites of the comparisons.
var opposites = map[spec.Op]spec.Op{
	spec.Eq: spec.Ne, spec.Ne: spec.Eq, spec.Lt: spec.Ge, spec.Ge: spec.Lt, spec.Gt: spec.Le, spec.Le: spec.Gt,
}

// negated is the predicate that holds of the readable values that p does not
// hold of.
func (p *Predicate) negated() *Predicate {
	n := *p
	n.Text = "!(" + p.Text + ")"
	if op, ok := opposites[p.Op]; ok && p.Ranges == nil {
		n.Op = op
	} else {
		n.Not = !p.Not
	}
	return &n
}

// predicate checks an item's predicate against the value's type.
func (b *binder) predicate(item *spec.Item, v *Value) (*Predicate, error) {
	p := item.Pred
	switch {
	case p == nil:
		return b.nonZero(item, v)
	case p.Op == spec.IsErr:
		return b.isErr(item, v)
	}
	if p.Const.Kind == spec.String {
		v.readAsText()
	}
	switch {
	case v.IsText() && p.Const.Kind == spec.String:
		return b.textPredicate(item, v)
	case v.IsText() && v.Scalar == nil:
		return nil, b.errorf(p.Const.At, "'%s' is a string, and %s is none", v.Name, p.Const.Text).
			WithHint("strings stand in quotes: %s == \"%s\"", v.Name, p.Const.Text)
	}
	if p.Op == spec.Glob {
		return nil, b.errorf(p.OpAt, "'%s' is %s, no string, so '~' has no meaning", v.Name, describe(v.Type))
	}
	if v.Scalar == nil {
		return nil, b.errorf(item.Value.Span(), "'%s' is %s, which has no order and cannot be compared", v.Name, describe(v.Type))
	}
	c, err := b.number(v, p.Const)
	if err != nil {
		return nil, err
	}
	if p.Op == spec.Mask {
		return b.mask(item, v, c)
	}
	return b.comparison(item, v, c)
}

// nonZero is the predicate of a value that stands alone in a condition.
func (b *binder) nonZero(item *spec.Item, v *Value) (*Predicate, error) {
	if v.Scalar == nil {
		return nil, b.errorf(item.Value.Span(), "'%s' is %s, which is neither true nor false", v.Name, describe(v.Type)).
			WithHint("compare it with a constant")
	}
	return &Predicate{Text: item.String(), Op: spec.Ne, Signed: v.Scalar.Signed}, nil
}

// lowestError is the lowest error pointer: -MAX_ERRNO, which is -4095.
const lowestError = math.MaxUint64 - 4094

// isErr is the comparison of IS_ERR: with the lowest of the error pointers.
func (b *binder) isErr(item *spec.Item, v *Value) (*Predicate, error) {
	if v.Scalar == nil || v.Scalar.Signed || v.Scalar.width() != 64 {
		err := b.errorf(item.Pred.OpAt, "'%s' is %s, and 'is-err' is about pointers", v.Name, describe(v.Type))
		if v.Scalar != nil && v.Scalar.Signed {
			return nil, err.WithHint("write %s < 0", v.Name)
		}
		return nil, err
	}
	return &Predicate{Text: item.String(), Op: spec.Ge, Const: lowestError}, nil
}

func (b *binder) comparison(item *spec.Item, v *Value, c spec.Constant) (*Predicate, error) {
	fail := func(format string, args ...any) *spec.Error { return b.errorf(c.At, format, args...) }
	if !v.Scalar.fits(c) {
		err := fail("%s does not fit '%s', which is %s and holds %s", c.Text, v.Name, describe(v.Type), v.Scalar.bounds())
		if same, ok := v.Scalar.sameBits(c); ok {
			err = err.WithHint("did you mean %d?", same)
		}
		return nil, err
	}
	pred := &Predicate{Text: item.String(), Op: item.Pred.Op, Signed: v.Scalar.Signed, Const: c.Abs}
	if c.Neg {
		pred.Const = -c.Abs
	}
	lo, hi := v.Scalar.limits()
	switch pred.constant(lo, hi) {
	case always:
		return nil, fail("'%s' always holds: '%s' is %s and holds %s", pred.Text, v.Name, describe(v.Type), v.Scalar.bounds())
	case never:
		return nil, fail("'%s' can never hold: '%s' is %s and holds %s", pred.Text, v.Name, describe(v.Type), v.Scalar.bounds())
	}
	return pred, nil
}

// mask checks the bits that a value is tested for: those of its width.
func (b *binder) mask(item *spec.Item, v *Value, c spec.Constant) (*Predicate, error) {
	bits := c.Abs
	if c.Neg {
		bits = -c.Abs
	}
	w := v.Scalar.width()
	pattern := uint64(math.MaxUint64) >> (64 - w)
	switch {
	case bits == 0:
		return nil, b.errorf(c.At, "'%s' can never hold: no bit is set in 0", item)
	case c.Neg && !v.Scalar.fits(c), !c.Neg && bits > pattern:
		return nil, b.errorf(c.At, "%s does not fit '%s', which is %s and has %d bits", c.Text, v.Name, describe(v.Type), w)
	}
	return &Predicate{Text: item.String(), Op: spec.Mask, Const: bits & pattern}, nil
}

type verdict int

const (
	depends verdict = iota
	always
	never
)

// constant says whether an ordering has the same outcome for all of lo..hi.
func (p *Predicate) constant(lo, hi uint64) verdict {
	if p.Op == spec.Eq || p.Op == spec.Ne {
		return depends
	}
	switch first, last := p.holds(lo), p.holds(hi); {
	case first && last:
		return always
	case !first && !last:
		return never
	}
	return depends
}

// limits is the least and the greatest value, as 64-bit patterns.
func (s *Scalar) limits() (lo, hi uint64) {
	w := s.width()
	if s.Bool {
		return 0, 1
	}
	if s.Signed {
		return uint64(int64(math.MinInt64) >> (64 - w)), math.MaxInt64 >> (64 - w)
	}
	return 0, math.MaxUint64 >> (64 - w)
}

func (s *Scalar) fits(c spec.Constant) bool {
	lo, hi := s.limits()
	if c.Neg {
		return c.Abs == 0 || s.Signed && c.Abs <= -lo
	}
	return c.Abs <= hi
}

// sameBits is the signed value with the bit pattern of a constant that is too
// large, as in 0xffffffff for an int.
func (s *Scalar) sameBits(c spec.Constant) (int64, bool) {
	w := s.width()
	if !s.Signed || c.Neg || c.Abs > math.MaxUint64>>(64-w) {
		return 0, false
	}
	return int64(c.Abs<<(64-w)) >> (64 - w), true
}
