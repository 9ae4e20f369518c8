package codegen

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// cOperands has the types of C's operations, by their size and sign.
var cOperands = map[[2]int]*cType{
	{4, 1}: cNumber("int", "int", 4, true), {4, 0}: cNumber("unsigned int", "unsigned int", 4, false),
	{8, 1}: cNumber("long", "long int", 8, true), {8, 0}: cNumber("unsigned long", "long unsigned int", 8, false),
}

func cOperand(size int, signed bool) *cType {
	if signed {
		return cOperands[[2]int{size, 1}]
	}
	return cOperands[[2]int{size, 0}]
}

// promotion returns the type of a number in an operation (6.3.1.1).
func promotion(c cell) *cType {
	switch {
	case c.typ.kind == cPointer:
		return cOperand(8, false)
	case c.typ.kind == cBool, c.typ.size < 4, c.bits > 0 && c.bits < 32:
		return cOperand(4, true)
	case c.bits == 32: // of a larger type, too
		return cOperand(4, c.typ.signed)
	}
	return cOperand(c.typ.size, c.typ.signed)
}

// usual returns the type that two numbers are converted to (6.3.1.8).
func usual(x, y cell) *cType {
	a, b := promotion(x), promotion(y)
	switch {
	case a.size != b.size && a.size > b.size:
		return a
	case a.size != b.size:
		return b
	case !a.signed:
		return a
	}
	return b
}

// integer returns the number with a type, without bounds.
func integer(n uint64, signed bool) *big.Int {
	if signed {
		return big.NewInt(int64(n))
	}
	return new(big.Int).SetUint64(n)
}

// binary evaluates an operation. Its numbers have no bounds until the result is
// converted to its type.
func (r *reference) binary(e *spec.Binary) (cell, error) {
	x, err := r.operandOf(e.X)
	if err != nil {
		return x, err
	}
	y, err := r.operandOf(e.Y)
	switch {
	case err != nil:
		return y, err
	case x.bad && !(y.bad && y.typ.kind == cPointer && x.typ.kind != cPointer):
		return cell{typ: r.resultType(e, x, y), in: isNumber, bad: true, base: x.base}, nil
	case x.bad || y.bad: // a pointer is read before the number that is added to it
		return cell{typ: r.resultType(e, x, y), in: isNumber, bad: true, base: y.base}, nil
	}
	t := r.resultType(e, x, y)
	a := integer(t.convert(x.num), t.signed)
	b := integer(t.convert(y.num), t.signed)
	size := int64(1)
	switch {
	case x.typ.kind == cPointer && y.typ.kind == cPointer:
		return r.apart(x, y)
	case x.typ.kind == cPointer:
		size = int64(max(x.typ.to.size, 1))
	case y.typ.kind == cPointer:
		size = int64(max(y.typ.to.size, 1))
		x, y = y, x
		a, b = b, a
	}
	n := new(big.Int)
	switch e.Op {
	case spec.Add:
		n.Add(a, b.Mul(b, big.NewInt(size)))
	case spec.Sub:
		n.Sub(a, b.Mul(b, big.NewInt(size)))
	case spec.Mul:
		n.Mul(a, b)
	case spec.BitAnd:
		n.And(a, b)
	case spec.BitOr:
		n.Or(a, b)
	case spec.Shl:
		n.Lsh(a, uint(y.num)%uint(8*t.size))
	case spec.Shr:
		n.Rsh(a, uint(y.num)%uint(8*t.size))
	}
	n.And(n, integer(^uint64(0), false))
	return cell{typ: t, in: isNumber, num: t.convert(n.Uint64())}, nil
}

// apart returns how many elements are between two pointers. If that is not a whole
// number, C does not define it.
func (r *reference) apart(x, y cell) (cell, error) {
	size := int64(max(x.typ.to.size, 1))
	if int64(max(y.typ.to.size, 1)) != size {
		return x, fmt.Errorf("pointers to different things")
	}
	n, rest := new(big.Int).QuoRem(big.NewInt(int64(x.num-y.num)), big.NewInt(size), new(big.Int))
	r.open = r.open || rest.Sign() != 0
	return cell{typ: cOperand(8, true), in: isNumber, num: uint64(n.Int64())}, nil
}

// resultType returns the type of the result.
func (r *reference) resultType(e *spec.Binary, x, y cell) *cType {
	switch {
	case x.typ.kind == cPointer && y.typ.kind == cPointer:
		return cOperand(8, true)
	case x.typ.kind == cPointer:
		return x.typ
	case y.typ.kind == cPointer:
		return y.typ
	case e.Op == spec.Shl, e.Op == spec.Shr:
		return promotion(x)
	}
	return usual(x, y)
}

// operandOf returns the number of a value in an operation or in a comparison with
// another. At return, what belongs to the entry is what it was then.
func (r *reference) operandOf(e spec.Expr) (cell, error) {
	switch e := e.(type) {
	case *spec.Number:
		return literal(e.Const), nil
	case *spec.Arg:
		if n, ok := r.k.enums[e.Name.Name]; ok {
			return literal(spec.Constant{Abs: n}), nil
		}
	}
	if c, ok := r.call.early[e.String()]; ok && r.late && !r.now && r.belongs(e) == compiler.AtEntry {
		return c, nil
	}
	c, err := r.eval(e)
	switch {
	case err != nil:
		return c, err
	case c.typ.kind == cArray && c.in == inMemory:
		to := pointerTo(c.typ.to)
		if c.bad {
			return cell{typ: to, in: isNumber, bad: true, base: c.base}, nil
		}
		return cell{typ: to, in: isNumber, num: c.base + c.off}, nil
	case !c.typ.scalar():
		return c, fmt.Errorf("%s is no number", e)
	}
	n := r.number(c)
	n.taken = false
	return n, nil
}

// literal returns a constant with its type (6.4.4.1).
func literal(c spec.Constant) cell {
	if c.Text != "" {
		c.Abs = integerIn(c.Text)
	}
	n := c.Abs
	if c.Neg {
		n = -n
	}
	v := integer(c.Abs, false)
	if c.Neg {
		v.Neg(v)
	}
	bits := v.BitLen()
	if c.Neg { // -2^31 has 31 bits besides its sign
		bits = new(big.Int).Not(v).BitLen()
	}
	hex := len(c.Text) > 1 && c.Text[0] == '0'
	switch {
	case bits <= 31:
		return cell{typ: cOperand(4, true), in: isNumber, num: n}
	case bits <= 32 && hex && !c.Neg:
		return cell{typ: cOperand(4, false), in: isNumber, num: n}
	case bits <= 63:
		return cell{typ: cOperand(8, true), in: isNumber, num: n}
	}
	return cell{typ: cOperand(8, false), in: isNumber, num: n}
}

// integerIn returns the integer that a text has, without its sign, or 0.
func integerIn(text string) uint64 {
	text = strings.TrimLeft(text, "+- ")
	size := int64(1)
	for _, suffix := range []string{"kK", "M", "G", "T"} {
		size *= 1024
		if digits := strings.TrimRight(text, suffix); digits != text {
			if n, ok := new(big.Int).SetString(digits, 10); ok {
				return n.Mul(n, big.NewInt(size)).Uint64()
			}
		}
	}
	if n, ok := new(big.Int).SetString(text, 0); ok { // octal after 0, as in C
		return n.Uint64()
	}
	return 0
}

// with returns what an item is compared with, if that is a value.
func (r *reference) with(it *spec.Item) spec.Expr {
	p := it.Pred
	if p == nil {
		return nil
	}
	if p.With != nil {
		return p.With
	}
	for _, param := range r.fn.params {
		if p.Const.Kind == spec.Name && !p.Const.Neg && p.Const.Str == param.name {
			return &spec.Arg{Name: spec.Ident{Name: param.name}}
		}
	}
	return nil
}

// holdsWith returns the result of a predicate that compares two values.
func (r *reference) holdsWith(it *spec.Item, with spec.Expr) (truth, error) {
	var x cell
	var err error
	if c, ok := r.call.early[key(it)]; ok && r.late && r.belongs(it.Value) == compiler.AtEntry {
		x = c
	} else if x, err = r.leftOf(it); err != nil {
		return no, err
	}
	y, err := r.operandOf(with)
	switch {
	case err != nil:
		return no, err
	case x.bad || y.bad:
		bad := x
		if !x.bad {
			bad = y
		}
		r.call.soft = r.call.soft || int64(bad.base) < 0
		return unknown, nil
	}
	t := usual(x, y)
	a, b := integer(t.convert(x.num), t.signed), integer(t.convert(y.num), t.signed)
	if it.Pred.Op == spec.Mask {
		return truthOf(a.And(a, b).Sign() != 0), nil
	}
	return truthOf(compare(it.Pred.Op, a.Cmp(b))), nil
}

// leftOf returns the number of an item as its format makes it.
func (r *reference) leftOf(it *spec.Item) (cell, error) {
	c, err := r.eval(it.Value)
	if err != nil {
		return c, err
	}
	if !c.typ.scalar() {
		return c, fmt.Errorf("%s is no number", it.Value)
	}
	f := r.formatted(it, c)
	left := cell{in: isNumber, num: f.num, bad: f.bad, base: f.base, typ: c.typ}
	switch name := it.Format.Name; {
	case name == "", name == "x", name == "d", name == "u", name == "c", name == "ip4", name == "ip", name == "errno", name == "symbol":
		left.bits = c.bits
	default:
		left.typ = &cType{kind: cInt, size: f.bits / 8, signed: f.signed}
	}
	return left, nil
}

func key(it *spec.Item) string { return it.Value.String() + ":" + it.Format.Name }

// belongs returns the side to which a value belongs. A value that is known on both
// belongs to the entry, unless the spec is about the return alone.
func (r *reference) belongs(e spec.Expr) compiler.Side {
	if s := side(e); s != compiler.AnySide {
		return s
	}
	_, ret, both := r.sides()
	if ret && r.measure == compiler.Tables && e.String() == "$kstack" {
		return compiler.AtReturn // where calls are counted
	}
	return both
}

// lookEarly evaluates, at entry, what values at return are computed from.
func (r *reference) lookEarly() error {
	r.call.early = map[string]cell{}
	early := func(e spec.Expr) {
		if _, isNumber := e.(*spec.Number); isNumber || r.belongs(e) != compiler.AtEntry {
			return
		}
		if c, err := r.operandOf(e); err == nil {
			r.call.early[e.String()] = c
		}
	}
	for _, it := range append(r.list(), r.predicates()...) {
		it.Walk(func(e spec.Expr) {
			if b, ok := e.(*spec.Binary); ok {
				early(b.X)
				early(b.Y)
			}
		})
		if with := r.with(it); with != nil {
			early(with)
			if r.belongs(it.Value) == compiler.AtEntry {
				if c, err := r.leftOf(it); err == nil {
					r.call.early[key(it)] = c
				}
			}
		}
	}
	return nil
}
