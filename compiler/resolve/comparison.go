package resolve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// with returns the expression that an item is compared with, or nil if that is a
// constant. A name is that of an argument, if the function has one of this name.
func (b *binder) with(item *spec.Item) spec.Expr {
	p := item.Pred
	switch {
	case p == nil || p.Op == spec.Glob || p.Op == spec.IsErr || b.trace.Line != nil:
		return nil
	case p.With != nil:
		return p.With
	case p.Const.Kind == spec.Name && !p.Const.Neg && b.param(p.Const.Str) != nil:
		return &spec.Arg{Name: spec.Ident{Name: p.Const.Str, At: p.Const.At}}
	}
	return nil
}

// constantWith returns the item with the constant in place of an expression of
// constants that it is compared with. It returns other items as they are.
func (b *binder) constantWith(item *spec.Item) (*spec.Item, error) {
	e := b.with(item)
	if e == nil {
		return item, nil
	}
	v, err := b.folded(e)
	if v == nil || err != nil {
		return item, err
	}
	folded, pred := *item, *item.Pred
	n := *v.Base.Number
	pred.Const = withNumber(spec.Constant{Text: e.String(), At: e.Span()}, n, v.Scalar.Signed)
	pred.With = nil
	folded.Pred = &pred
	return &folded, nil
}

// compareValues binds a comparison of two values.
func (b *binder) compareValues(item *spec.Item, x *compiler.Value, e spec.Expr, negative bool) (compiler.Cond, error) {
	if err := b.asNumber(x, item.Value.Span()); err != nil {
		return nil, err
	}
	y, err := b.term(e)
	if err != nil {
		return nil, err
	}
	_, xPoints := btf.As[*btf.Pointer](x.Type)
	_, yPoints := btf.As[*btf.Pointer](y.Type)
	op := item.Pred.Op
	switch {
	case x.Scalar == nil || x.IsText() && !xPoints:
		return nil, b.errorf(item.Value.Span(), "'%s' is %s, which has no order and cannot be compared with a value", x.Name, describe(x.Type))
	case strings.HasSuffix(x.Format, "string"):
		return nil, b.errorf(e.Span(), "'%s' is a string, which is compared with a constant", x.Name)
	case xPoints != yPoints && (promoted(x).Size != 8 || promoted(y).Size != 8), (xPoints || yPoints) && op == spec.Mask:
		return nil, b.errorf(item.Pred.OpAt, "'%s' is %s, and '%s' is %s", x.Name, describe(x.Type), e, describe(y.Type)).
			WithHint("a cast makes a number of a pointer: (u64)%s", x.Name)
	case item.Format.Name == "" && item.Value.String() == e.String() && op != spec.Mask:
		return nil, b.errorf(item.Pred.Span(), "'%s' compares '%s' with itself", item, e)
	}
	t := common(x, y)
	v := computed(0, bare(x), bare(y), compiler.Scalar{Size: 4, Signed: true})
	v.Base.Of.Compare, v.Base.Of.Type = op, t
	v.Name = item.String()
	if err := b.tooNested(e, v); err != nil {
		return nil, err
	}
	pred := &compiler.Predicate{Text: item.String(), Op: spec.Ne}
	if negative {
		pred = negated(pred)
	}
	return &compiler.Leaf{Value: v, Pred: pred}, nil
}

// noteMixedSigns adds a note to a plan for each comparison of a probe in which a negative
// number counts as a large one, which is rarely meant. With == and != it may be meant.
func noteMixedSigns(plan *compiler.Plan, p *compiler.Probe) {
	for l := range p.Leaves() {
		of := l.Value.Base.Of
		if of == nil || of.Type.Signed || of.X.Scalar.Signed == of.Y.Scalar.Signed || !slices.Contains(orders, of.Compare) {
			continue
		}
		signed, unsigned := of.X, of.Y
		if of.Y.Scalar.Signed {
			signed, unsigned = of.Y, of.X
		}
		if _, nonnegative := possibleBits(signed); nonnegative {
			continue
		}
		name := unsigned.Name
		if unsigned.Base.Of != nil {
			name = "(" + name + ")"
		}
		note := fmt.Sprintf("in '%s' a negative '%s' counts as a large number, as in C: (s64)%s compares it as what it is", l.Pred.Text, signed.Name, name)
		if !slices.Contains(plan.Notes, note) { // another function of a glob may have it
			plan.Notes = append(plan.Notes, note)
		}
	}
}

// orders are the comparisons that ask which value is larger.
var orders = []spec.Op{spec.Lt, spec.Le, spec.Gt, spec.Ge}

// possibleBits returns the bits that may be set in a number, or false if any may be,
// as in a negative number.
func possibleBits(v *compiler.Value) (mask uint64, ok bool) {
	of := v.Base.Of
	if v.Base.Number != nil {
		return *v.Base.Number, int64(*v.Base.Number) >= 0
	}
	if of == nil || len(v.Path)+len(v.Casts) > 0 || v.Swap || of.Compare != 0 {
		_, hi := limits(v.Scalar)
		return hi, !v.Scalar.Signed
	}
	x, xOK := possibleBits(of.X)
	y, yOK := possibleBits(of.Y)
	_, hi := limits(&of.Type)
	switch {
	case of.Op == spec.BitAnd && xOK && yOK:
		return x & y & hi, true
	case of.Op == spec.BitAnd && (xOK || yOK):
		if yOK {
			x = y
		}
		return x, x <= hi
	case of.Op == spec.BitOr && xOK && yOK:
		return x | y, x|y <= hi
	case of.Op == spec.Shr && xOK && of.Y.Base.Number != nil:
		return x >> y, true
	case of.Op == spec.Shl && xOK && of.Y.Base.Number != nil && x<<y>>y == x && x<<y <= hi:
		return x << y, true
	}
	return hi, !of.Type.Signed
}

// computedVerdict returns whether a comparison of a computed value always holds or
// never holds because of the bits that the value may have.
func computedVerdict(p *compiler.Predicate, v *compiler.Value) (_ verdict, bits uint64) {
	bits, ok := possibleBits(v)
	if _, hi := limits(v.Scalar); v.Base.Of == nil || !ok || bits == hi && !v.Scalar.Signed { // the limits say it all
		return depends, 0
	}
	outside := p.Const&^bits != 0
	switch {
	case p.Op == spec.Eq && outside:
		return never, bits
	case p.Op == spec.Ne && outside:
		return always, bits
	case p.Op == spec.Mask && p.Const&bits == 0:
		return never, bits
	case p.Op == spec.Mask:
		return depends, 0
	}
	return constant(p, 0, bits), bits
}
