package compiler

import (
	"math"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// Predicate compares a value, extended to 64 bits, with a constant.
type Predicate struct {
	Text   string // as in the spec: skb->len > 100
	Op     spec.Op
	Signed bool
	Const  uint64 // two's complement if Signed
}

// holds says whether the predicate is true of v.
func (p *Predicate) holds(v uint64) bool {
	less := v < p.Const
	if p.Signed {
		less = int64(v) < int64(p.Const)
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
	default:
		return !less
	}
}

// resolvePredicate checks an item's predicate against the value's type.
func resolvePredicate(trace *spec.Trace, item *spec.Item, v *Value) (*Predicate, error) {
	p := item.Pred
	fail := func(format string, args ...any) *spec.Error {
		return spec.Errorf(trace.Text, p.Const.At, format, args...)
	}
	if v.Scalar == nil {
		return nil, spec.Errorf(trace.Text, item.Value.Span(),
			"'%s' is %s, which has no order and cannot be compared", v.Name, describe(v.Type))
	}
	if !v.Scalar.fits(p.Const) {
		err := fail("%s does not fit '%s', which is %s and holds %s", p.Const.Text, v.Name, describe(v.Type), v.Scalar.bounds())
		if same, ok := v.Scalar.sameBits(p.Const); ok {
			err = err.WithHint("did you mean %d?", same)
		}
		return nil, err
	}
	pred := &Predicate{Text: item.String(), Op: p.Op, Signed: v.Scalar.Signed, Const: p.Const.Abs}
	if p.Const.Neg {
		pred.Const = -p.Const.Abs
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
