package resolve

import (
	"encoding/binary"
	"net/netip"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// addressCond binds a comparison of an IP address that is not a number: one of
// 16 bytes, one in a structure or an array, or one that a pointer points to. It
// returns nil for other comparisons.
func (b *binder) addressCond(item *spec.Item, v *compiler.Value, negative bool) (compiler.Cond, error) {
	p := item.Pred
	if p == nil || p.Const.Kind != spec.String || v.Format != "ip4" && v.Format != "ip6" || v.Scalar != nil && v.Pointee == nil {
		return nil, nil
	}
	op := p.Op
	if negative {
		op = compiler.Opposites[op]
	}
	if op != spec.Eq && op != spec.Ne {
		return nil, b.noOrder(p, v)
	}
	want, err := b.addressOf(v, p.Const)
	if err != nil {
		return nil, err
	}
	var same, differs, readable []compiler.Cond
	for off := 0; off < len(want); off += 8 {
		size := min(8, len(want)-off)
		var word [8]byte
		copy(word[:], want[off:])
		part := partOf(v, off, size)
		leaf := func(op spec.Op, n uint64) compiler.Cond {
			return &compiler.Leaf{Value: part, Pred: &compiler.Predicate{Text: item.String(), Op: op, Const: n}}
		}
		n := binary.LittleEndian.Uint64(word[:])
		same = append(same, leaf(spec.Eq, n))
		differs = append(differs, leaf(spec.Ne, n))
		readable = append(readable, leaf(spec.Ge, 0))
	}
	switch {
	case len(same) == 1 && op == spec.Eq:
		return same[0], nil
	case len(same) == 1:
		return differs[0], nil
	case op == spec.Eq:
		return compiler.AllOf(same), nil
	}
	return append(compiler.AllOf(readable), compiler.AnyOf(differs)), nil
}

// noOrder returns the error for an operator that has no meaning for an address. The bytes
// of an IPv4 address are in network order, so that its number has another order.
func (b *binder) noOrder(p *spec.Predicate, v *compiler.Value) error {
	return b.errorf(p.OpAt, "'%s' is an address, which is compared with == and !=", v.Name)
}

// addressOf parses a constant as an address of the kind that v is shown as, and
// returns its bytes.
func (b *binder) addressOf(v *compiler.Value, c spec.Constant) ([]byte, error) {
	a, err := netip.ParseAddr(c.Str)
	switch six := v.Format == "ip6"; {
	case six && (err != nil || !a.Is6() || a.Zone() != ""):
		fail := b.errorf(c.At, "%s is not an IPv6 address", c.Text)
		if err == nil && a.Is4() {
			return nil, fail.WithHint(`one of IPv4 is written "::ffff:%s"`, a)
		}
		return nil, fail.WithHint(`write it as "2001:db8::1"`)
	case !six && (err != nil || !a.Is4()):
		return nil, b.errorf(c.At, "%s is not an IPv4 address", c.Text).WithHint(`write it as "192.0.2.1"`)
	}
	return a.AsSlice(), nil
}

// partOf returns size bytes of a value, or of what it points to, as a number.
func partOf(v *compiler.Value, off, size int) *compiler.Value {
	p := *v
	p.Type = intType("unsigned number", uint32(size), btf.Unsigned)
	p.Load = &compiler.Scalar{Size: size}
	p.Scalar, p.Pointee, p.Format = p.Load, nil, ""
	p.Hidden = true
	switch n := len(v.Path); {
	case v.Pointee != nil && (n == 0 || !v.Path[n-1].Addr):
		p.Path = appendPath(v.Path, compiler.Access{Off: off, Size: size})
	case n > 0:
		last := v.Path[n-1]
		p.Path = appendPath(v.Path[:n-1], compiler.Access{Off: last.Off + off, Size: size, In: last.In})
	default:
		p.Base.Word += off / 8
	}
	return &p
}
