package resolve

import (
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// negated returns the predicate that holds for the readable values for which p
// does not hold.
func negated(p *compiler.Predicate) *compiler.Predicate {
	n := *p
	n.Text = "!(" + p.Text + ")"
	if op, ok := compiler.Opposites[p.Op]; ok && p.Ranges == nil {
		n.Op = op
	} else {
		n.Not = !p.Not
	}
	return &n
}

// predicate checks an item's predicate against the value's type.
func (b *binder) predicate(item *spec.Item, v *compiler.Value) (*compiler.Predicate, error) {
	p := item.Pred
	if err := b.asNumber(v, item.Value.Span()); err != nil {
		return nil, err
	}
	switch {
	case p == nil:
		return b.nonZero(item, v)
	case p.Op == spec.IsErr:
		return b.isErr(item, v)
	}
	if p.Const.Kind == spec.String {
		if v.Format == "" && b.isUserText(v) {
			return nil, b.userText(item, v)
		}
		readAsText(v)
	}
	switch {
	case v.IsText() && p.Const.Kind == spec.String:
		return b.textPredicate(item, v)
	case v.IsText() && v.Scalar == nil:
		return nil, b.errorf(p.Const.At, "'%s' is a string, and %s is none", v.Name, p.Const.Text).
			WithHint("put strings in quotes: %s == \"%s\"", v.Name, p.Const.Text)
	}
	if p.Op == spec.Glob {
		return nil, b.errorf(p.OpAt, "'%s' is %s, not a string, so '~' has no meaning", v.Name, kindOf(v))
	}
	switch {
	case v.Scalar == nil && p.Const.Kind == spec.String:
		return nil, b.noString(v, p.Const)
	case v.Scalar == nil:
		return nil, b.errorf(item.Value.Span(), "'%s' is %s, which has no order and cannot be compared", v.Name, describe(v.Type))
	}
	if v.Format == "ip4" && p.Const.Kind == spec.String && slices.Contains(orders, p.Op) {
		return nil, b.noOrder(p, v)
	}
	if err := b.positiveErrno(item, v); err != nil {
		return nil, err
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

// Recorded binds the comparison of a value that was recorded of a function with a
// constant. The only enumerators that it knows are those of the value's own type. The
// error is a [*spec.Error].
func Recorded(trace *spec.Trace, item *spec.Item, v *compiler.Value, fn *compiler.Function, arch *compiler.Arch) (*compiler.Predicate, error) {
	b := &binder{trace: trace, target: &compiler.Target{Arch: arch}, fn: fn}
	asked := *v
	pred, err := b.predicate(item, &asked)
	if err == nil && pred.Pattern != nil && !v.IsText() {
		return nil, b.errorf(item.Value.Span(), "'%s' was recorded as %s, not as a string", v.Name, kindOf(v))
	}
	return pred, err
}

// nonZero returns the predicate of a value that stands alone in a condition.
func (b *binder) nonZero(item *spec.Item, v *compiler.Value) (*compiler.Predicate, error) {
	if v.Scalar == nil {
		err := b.errorf(item.Value.Span(), "'%s' is %s, which is neither true nor false", v.Name, describe(v.Type))
		if v.IsText() {
			return nil, err.WithHint("compare it with a constant")
		}
		return nil, err
	}
	return &compiler.Predicate{Text: item.String(), Op: spec.Ne, Signed: v.Scalar.Signed}, nil
}

// lowestError is the lowest error pointer: -MAX_ERRNO.
const lowestError = math.MaxUint64 - compiler.MaxErrno + 1

// isErr returns the comparison that IS_ERR of the kernel makes, with the lowest of the
// error pointers.
func (b *binder) isErr(item *spec.Item, v *compiler.Value) (*compiler.Predicate, error) {
	if v.Scalar == nil || v.Scalar.Signed || v.Scalar.Width() != 64 {
		err := b.errorf(item.Pred.OpAt, "'%s' is %s, and 'is-err' is about pointers", v.Name, kindOf(v))
		if v.Scalar != nil && v.Scalar.Signed {
			return nil, err.WithHint("write %s < 0", v.Name)
		}
		return nil, err
	}
	return &compiler.Predicate{Text: item.String(), Op: spec.Ge, Const: lowestError}, nil
}

func (b *binder) comparison(item *spec.Item, v *compiler.Value, c spec.Constant) (*compiler.Predicate, error) {
	fail := func(format string, args ...any) *spec.Error { return b.errorf(c.At, format, args...) }
	if !fits(v.Scalar, c) {
		err := fail("%s does not fit '%s', which is %s and holds %s", c.Text, v.Name, kindOf(v), bounds(v.Scalar))
		if same, ok := sameBits(v.Scalar, c); ok {
			err = err.WithHint("did you mean %d?", same)
		}
		return nil, err
	}
	pred := &compiler.Predicate{Text: item.String(), Op: item.Pred.Op, Signed: v.Scalar.Signed, Const: c.Abs}
	if c.Neg {
		pred.Const = -c.Abs
	}
	switch verdict, bits := computedVerdict(pred, v); verdict {
	case always:
		return nil, fail("'%s' always holds: '%s' has no other bits than %#x", pred.Text, v.Name, bits)
	case never:
		return nil, fail("'%s' can never hold: '%s' has no other bits than %#x", pred.Text, v.Name, bits)
	}
	lo, hi := limits(v.Scalar)
	switch constant(pred, lo, hi) {
	case always:
		return nil, fail("'%s' always holds: '%s' is %s and holds %s", pred.Text, v.Name, kindOf(v), bounds(v.Scalar))
	case never:
		return nil, fail("'%s' can never hold: '%s' is %s and holds %s", pred.Text, v.Name, kindOf(v), bounds(v.Scalar))
	}
	return pred, nil
}

// mask binds a comparison for common bits. It checks that the bits are within the
// value's width.
func (b *binder) mask(item *spec.Item, v *compiler.Value, c spec.Constant) (*compiler.Predicate, error) {
	bits := c.Abs
	if c.Neg {
		bits = -c.Abs
	}
	w := v.Scalar.Width()
	pattern := uint64(math.MaxUint64) >> (64 - w)
	switch {
	case bits == 0:
		return nil, b.errorf(c.At, "'%s' can never hold: no bit is set in 0", item)
	case c.Neg && !fits(v.Scalar, c), !c.Neg && bits > pattern:
		return nil, b.errorf(c.At, "%s does not fit '%s', which is %s and has %d bits", c.Text, v.Name, describe(v.Type), w)
	}
	pred := &compiler.Predicate{Text: item.String(), Op: spec.Mask, Const: bits & pattern}
	if verdict, bits := computedVerdict(pred, v); verdict == never {
		return nil, b.errorf(c.At, "'%s' can never hold: '%s' has no other bits than %#x", item, v.Name, bits)
	}
	return pred, nil
}

// verdict is at which calls a comparison holds: at all, none, or some.
type verdict int

const (
	depends verdict = iota
	always
	never
)

// constant returns whether an ordering always holds for values of lo..hi, never
// holds, or depends on the value.
func constant(p *compiler.Predicate, lo, hi uint64) verdict {
	if p.Op == spec.Eq || p.Op == spec.Ne {
		return depends
	}
	switch first, last := p.Holds(lo), p.Holds(hi); {
	case first && last:
		return always
	case !first && !last:
		return never
	}
	return depends
}

// limits returns the least and the greatest value, as 64-bit patterns.
func limits(s *compiler.Scalar) (lo, hi uint64) {
	w := s.Width()
	if s.Bool {
		return 0, 1
	}
	if s.Signed {
		return uint64(int64(math.MinInt64) >> (64 - w)), math.MaxInt64 >> (64 - w)
	}
	return 0, math.MaxUint64 >> (64 - w)
}

func fits(s *compiler.Scalar, c spec.Constant) bool {
	lo, hi := limits(s)
	if c.Neg {
		return c.Abs == 0 || s.Signed && c.Abs <= -lo
	}
	return c.Abs <= hi
}

// sameBits returns the signed value with the bit pattern of a constant that is
// too large, as in 0xffffffff for an int.
func sameBits(s *compiler.Scalar, c spec.Constant) (int64, bool) {
	w := s.Width()
	if !s.Signed || c.Neg || c.Abs > math.MaxUint64>>(64-w) {
		return 0, false
	}
	return int64(c.Abs<<(64-w)) >> (64 - w), true
}

// mostRanges is the largest number of ranges of a predicate: a program jumps at
// most 32767 instructions, and each range takes up to ten.
const mostRanges = 1000

// joinRanges sorts ranges and merges those that touch.
func joinRanges(ranges []compiler.Range) []compiler.Range {
	sort.Slice(ranges, func(i, j int) bool { return ranges[i].Low < ranges[j].Low })
	var joined []compiler.Range
	for _, r := range ranges {
		if n := len(joined); n > 0 && (r.Low <= joined[n-1].High || r.Low-1 == joined[n-1].High) {
			joined[n-1].High = max(joined[n-1].High, r.High)
			continue
		}
		joined = append(joined, r)
	}
	return joined
}

// newGlob parses a pattern that package spec has checked.
func newGlob(text string) (*compiler.Pattern, error) {
	p := &compiler.Pattern{Text: text, Glob: true}
	elements, err := spec.ParseGlob(text)
	if err != nil {
		return nil, err
	}
	for _, e := range elements {
		if e.Star {
			p.Stars |= 1 << len(p.Elements)
		} else {
			p.Elements = append(p.Elements, e)
		}
	}
	return p, nil
}

// textPredicate checks a comparison of a string.
func (b *binder) textPredicate(item *spec.Item, v *compiler.Value) (*compiler.Predicate, error) {
	p := item.Pred
	if v.Text == compiler.PathText {
		return nil, b.errorf(p.OpAt, "'%s' is a path, and the program in the kernel does not compare paths", v.Name).
			WithHint("compare the last name: %s", lastName(v))
	}
	pred := &compiler.Predicate{Text: item.String(), Op: p.Op, Pattern: &compiler.Pattern{Text: p.Const.Str}}
	least := len(p.Const.Str)
	switch p.Op {
	case spec.Eq, spec.Ne:
	case spec.Glob:
		pattern, err := newGlob(p.Const.Str)
		if err != nil {
			return nil, err
		}
		pred.Pattern, least = pattern, len(pattern.Elements)
	default:
		return nil, b.errorf(p.OpAt, "strings have no order: '%s' is compared by ==, != or ~", v.Name)
	}
	if v.InWords() && v.Text == compiler.NoText {
		return nil, b.errorf(item.Value.Span(), "'%s' is passed by value, and cannot be compared as a string", v.Name)
	}
	if strings.IndexByte(p.Const.Str, 0) >= 0 {
		return nil, b.errorf(p.Const.At, "'%s' can never hold: a string ends before its first \\x00", item)
	}
	if room := textRoom(v); room > 0 && least > room {
		return nil, b.errorf(p.Const.At, "%s does not fit '%s', which holds %d characters", p.Const.Text, v.Name, room)
	}
	return pred, nil
}

// textRoom returns the number of characters that an array holds, or 0 if the string
// is not an array, but behind a pointer.
func textRoom(v *compiler.Value) int {
	if v.Text != compiler.NoText {
		return 0
	}
	a, ok := btf.As[*btf.Array](v.Type)
	switch {
	case !ok:
		return 0
	case v.Base.Builtin == compiler.Comm:
		return int(a.Nelems) - 1 // the kernel ends it
	}
	return int(a.Nelems)
}
