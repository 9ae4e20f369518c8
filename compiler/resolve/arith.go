package resolve

import (
	"math"
	"math/bits"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// binary binds two values that an operator joins. The result has the type that it
// has in C, by the usual arithmetic conversions.
func (b *binder) binary(e *spec.Binary) (operand, error) {
	if c, err := b.folded(e); err != nil {
		return operand{}, err
	} else if c != nil {
		return operand{}, b.errorf(e.Span(), "'%s' is a constant", e)
	}
	x, err := b.term(e.X)
	if err != nil {
		return operand{}, err
	}
	y, err := b.term(e.Y)
	if err != nil {
		return operand{}, b.meantArrow(e, x, err)
	}
	v, err := b.operation(e, x, y)
	if err != nil {
		return operand{}, err
	}
	if err := b.tooNested(e, v); err != nil {
		return operand{}, err.WithHint("fewer parentheses on the right side of an operator make it less deep")
	}
	return operand{Value: *v}, nil
}

// tooNested returns an error if the operators of v, which is written as e, are
// nested deeper than programs can compute.
func (b *binder) tooNested(e spec.Expr, v *compiler.Value) *spec.Error {
	if v.Nested() > compiler.MostNested {
		return b.errorf(e.Span(), "operators are nested more than %d deep", compiler.MostNested)
	}
	return nil
}

// meantArrow adds a hint to the error for a name after a minus sign that is a
// member of what is before it.
func (b *binder) meantArrow(e *spec.Binary, x *compiler.Value, err error) error {
	arg, ok := e.Y.(*spec.Arg)
	target, points := pointee(x.Type)
	if refused, is := err.(*spec.Error); is && ok && points && e.Op == spec.Sub {
		if _, found := compiler.FindMember(target, arg.Name.Name); found {
			return refused.WithMeant("%s", &spec.Member{X: e.X, Name: arg.Name})
		}
	}
	return err
}

// term binds a value that an operator joins with another.
func (b *binder) term(e spec.Expr) (*compiler.Value, error) {
	switch e := e.(type) {
	case *spec.Number:
		return constantOf(e.Const), nil
	case *spec.Arg:
		if c := b.namedTerm(e); c != nil {
			return c, nil
		}
		if b.param(e.Name.Name) == nil {
			if err := b.uncertain(e.Name.Name, e.Span()); err != nil {
				return nil, err
			}
		}
	case *spec.Binary:
		if c, err := b.folded(e); c != nil || err != nil {
			return c, err
		}
	}
	v, err := b.sharedValue(e, spec.Ident{})
	if err == nil && len(v.Path) > 0 && v.Scalar == nil {
		if a, ok := btf.As[*btf.Array](v.Type); ok {
			return startOf(v, a), nil
		}
	}
	if err == nil {
		err = b.asNumber(v, e.Span())
	}
	if err == nil && v.Scalar == nil {
		return nil, b.errorf(e.Span(), "'%s' is %s, which is not a number", e, describe(v.Type))
	}
	return v, err
}

// startOf returns the address of an array's first element, which an array stands for
// next to an operator.
func startOf(v *compiler.Value, a *btf.Array) *compiler.Value {
	start := *v
	last := v.Path[len(v.Path)-1]
	start.Path = appendPath(v.Path[:len(v.Path)-1], compiler.Access{Off: last.Off, Size: 8, Addr: true})
	start.Type, start.Format = &btf.Pointer{Target: a.Type}, ""
	start.Load = &compiler.Scalar{Size: 8}
	start.Scalar = start.Load
	return &start
}

// namedTerm returns the constant with the name of e. It returns nil if there is none,
// or if the function has an argument with this name.
func (b *binder) namedTerm(e *spec.Arg) *compiler.Value {
	name := e.Name.Name
	if b.param(name) != nil {
		return nil
	}
	c := spec.Constant{Kind: spec.Integer, Text: name, At: e.Span()}
	if name == "true" {
		c.Abs = 1
	} else if name == "false" || name == "NULL" {
		c.Abs = 0
	} else if n, signed, ok := b.namedNumber(name); ok {
		c = withNumber(c, n, signed)
	} else {
		return nil
	}
	return constantOf(c)
}

// folded evaluates an expression of constants, and returns nil if e is not one. The
// result is exact, unlike that of C's types.
func (b *binder) folded(e spec.Expr) (*compiler.Value, error) {
	n := b.exact(e)
	if n == nil {
		return nil, nil
	}
	abs, _ := n.abs()
	if !n.fits() {
		return nil, b.errorf(e.Span(), "%s is out of range", e).
			WithHint("constants go from -%d (-2^63) to %d (2^64-1)", uint64(1)<<63, uint64(math.MaxUint64))
	}
	v := constantOf(spec.Constant{Neg: n.high < 0, Abs: abs}) // a 0 that e begins with does not make this octal
	v.Name = e.String()
	return v, nil
}

// exact returns the value of an expression of constants, or nil if e is not one or its
// value is not defined.
func (b *binder) exact(e spec.Expr) *wide {
	switch e := e.(type) {
	case *spec.Number:
		n := wideOf(e.Const.Abs, e.Const.Neg)
		return &n
	case *spec.Arg:
		if v := b.namedTerm(e); v != nil {
			n := wide{low: *v.Base.Number}
			if v.Scalar.Signed {
				n.high = int64(n.low) >> 63
			}
			return &n
		}
	case *spec.Binary:
		x, y := b.exact(e.X), b.exact(e.Y)
		if x == nil || y == nil {
			return nil
		}
		return exactly(e.Op, *x, *y)
	}
	return nil
}

// constantOf returns a constant with the type that it has in C.
func constantOf(c spec.Constant) *compiler.Value {
	n := c.Abs
	if c.Neg {
		n = -n
	}
	octalOrHex := len(c.Text) > 1 && c.Text[0] == '0'
	t := compiler.Scalar{Size: 8, Signed: true}
	switch {
	case c.Neg && int64(n) >= math.MinInt32, !c.Neg && n <= math.MaxInt32:
		t.Size = 4
	case !c.Neg && octalOrHex && n <= math.MaxUint32:
		t = compiler.Scalar{Size: 4}
	case !c.Neg && n > math.MaxInt64:
		t.Signed = false
	}
	v := numberOf(t)
	v.Name, v.Base.Number = c.Text, &n
	return v
}

// numberOf returns a value that is a number of this type.
func numberOf(t compiler.Scalar) *compiler.Value {
	name := map[compiler.Scalar]string{
		{Size: 4, Signed: true}: "int", {Size: 4}: "unsigned int", {Size: 8, Signed: true}: "long int", {Size: 8}: "long unsigned int",
	}[t]
	encoding := btf.Unsigned
	if t.Signed {
		encoding = btf.Signed
	}
	return &compiler.Value{Type: intType(name, uint32(t.Size), encoding), Load: &t, Scalar: &t}
}

// computed returns the result of an operation of this type.
func computed(op spec.Operator, x, y *compiler.Value, t compiler.Scalar) *compiler.Value {
	v := numberOf(t)
	v.Base.Of = &compiler.Operation{Op: op, X: x, Y: y, Type: t}
	v.Side = max(x.Side, y.Side)
	return v
}

// promoted returns the type that a number has in an operation. That of a bitfield is a
// matter of its width, whatever type it is declared with. Beyond 32 bits it has this type
// here, although GCC knows types of 33 to 63 bits.
func promoted(v *compiler.Value) compiler.Scalar {
	s := v.Scalar
	switch w := s.Width(); {
	case s.Bool, w < 32:
		return compiler.Scalar{Size: 4, Signed: true}
	case w == 32:
		return compiler.Scalar{Size: 4, Signed: s.Signed}
	}
	return compiler.Scalar{Size: s.Size, Signed: s.Signed}
}

// common returns the type that two numbers are converted to.
func common(x, y *compiler.Value) compiler.Scalar {
	a, c := promoted(x), promoted(y)
	switch {
	case a.Size > c.Size:
		return a
	case a.Size < c.Size:
		return c
	}
	a.Signed = a.Signed && c.Signed
	return a
}

// operation returns the value of an operation.
func (b *binder) operation(e *spec.Binary, x, y *compiler.Value) (*compiler.Value, error) {
	xTo, xPoints := btf.As[*btf.Pointer](x.Type)
	yTo, yPoints := btf.As[*btf.Pointer](y.Type)
	switch {
	case e.Op == spec.Add && xPoints && !yPoints:
		return b.moved(e, e.X, x, xTo, y)
	case e.Op == spec.Add && yPoints && !xPoints:
		return b.moved(e, e.Y, y, yTo, x)
	case e.Op == spec.Sub && xPoints && !yPoints:
		return b.moved(e, e.X, x, xTo, y)
	case e.Op == spec.Sub && xPoints && yPoints:
		return b.distance(e, x, xTo, y, yTo)
	case xPoints || yPoints:
		pointer := e.X
		if !xPoints {
			pointer = e.Y
		}
		return nil, b.errorf(e.OpAt, "'%s' is a pointer, and '%s' joins numbers", pointer, e.Op).
			WithHint("a cast makes a number of it: %s", castTo("u64", pointer))
	case e.Op == spec.Shl, e.Op == spec.Shr:
		t := promoted(x)
		if n := y.Base.Number; n != nil && *n >= uint64(8*t.Size) {
			return nil, b.errorf(e.Y.Span(), "'%s' has %d bits, and is shifted by %s", e.X, 8*t.Size, e.Y)
		}
		return computed(e.Op, x, y, t), nil
	}
	return computed(e.Op, x, y, common(x, y)), nil
}

// word is the type of addresses.
var word = compiler.Scalar{Size: 8}

// moved returns a pointer plus or minus a number of elements.
func (b *binder) moved(e *spec.Binary, pointer spec.Expr, p *compiler.Value, to *btf.Pointer, n *compiler.Value) (*compiler.Value, error) {
	size, err := b.stride(pointer, to)
	if err != nil {
		return nil, err
	}
	if size > 1 {
		n = computed(spec.Mul, n, constantOf(spec.Constant{Abs: size}), compiler.Scalar{Size: 8, Signed: true})
	}
	v := computed(e.Op, bare(p), n, word)
	v.Type = p.Type
	return v, nil
}

// distance returns the number of elements between two pointers. In C it must be a whole
// number, so a shift and a multiplication can replace the division by their size.
func (b *binder) distance(e *spec.Binary, x *compiler.Value, xTo *btf.Pointer, y *compiler.Value, yTo *btf.Pointer) (*compiler.Value, error) {
	size, err := b.stride(e.X, xTo)
	if err != nil {
		return nil, err
	}
	if other, err := b.stride(e.Y, yTo); err != nil || other != size {
		return nil, b.errorf(e.OpAt, "'%s' and '%s' point to things of different sizes", e.X, e.Y).
			WithHint("casts make numbers of them: %s - %s", castTo("u64", e.X), castTo("u64", e.Y))
	}
	signed := compiler.Scalar{Size: 8, Signed: true}
	v := computed(spec.Sub, bare(x), bare(y), signed)
	if twos := bits.TrailingZeros64(size); twos > 0 {
		v = computed(spec.Shr, v, constantOf(spec.Constant{Abs: uint64(twos)}), signed)
		size >>= twos
	}
	if size > 1 {
		inverse := size // of an odd number modulo 2^64, by Newton's method: 3 bits are right
		for range 5 {
			inverse *= 2 - size*inverse
		}
		v = computed(spec.Mul, v, constantOf(spec.Constant{Abs: inverse}), signed)
	}
	return v, nil
}

// stride returns the size of what a pointer points to. As in the kernel's C, void
// and functions have size 1.
func (b *binder) stride(e spec.Expr, to *btf.Pointer) (uint64, error) {
	if _, ok := btf.As[*btf.FuncProto](to.Target); ok || compiler.IsVoid(to.Target) {
		return 1, nil
	}
	size, err := btf.Sizeof(to.Target)
	if err != nil || size == 0 || size > farthest {
		return 0, b.errorf(e.Span(), "'%s' points to something of unknown size", e).
			WithHint("say what it is with a cast: %s", castTo("u8 *", e))
	}
	return uint64(size), nil
}
