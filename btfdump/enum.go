package btfdump

import (
	"cmp"
	"slices"

	"github.com/cilium/ebpf/btf"
)

// enumeration finds enumerators by value, cut to the width of the type: BTF of
// kernels before 6.0 has no sign for enums, and holds negative enumerators of
// any width in 32 bits.
type enumeration struct {
	width  uint     // of the type in bits
	values []uint64 // ascending, unique
	names  []string
}

func newEnumeration(e *btf.Enum) *enumeration {
	width := 8 * uint(e.Size)
	values := slices.Clone(e.Values)
	for i := range values {
		values[i].Value &= ones(width)
	}
	// Of two enumerators with one value the first names it.
	slices.SortStableFunc(values, func(a, b btf.EnumValue) int { return cmp.Compare(a.Value, b.Value) })
	values = slices.CompactFunc(values, func(a, b btf.EnumValue) bool { return a.Value == b.Value })

	n := &enumeration{width, make([]uint64, len(values)), make([]string, len(values))}
	for i, v := range values {
		n.values[i], n.names[i] = v.Value, clean(v.Name)
	}
	return n
}

func (c *compiler) enumValue(e *btf.Enum) op {
	if e.Size > 8 {
		return op{kind: kindWide, size: e.Size} // in made-up BTF only
	}
	if c.enums[e] == nil {
		c.enums[e] = newEnumeration(e)
	}
	return op{kind: kindEnum, size: e.Size, signed: e.Signed, enum: c.enums[e]}
}

// enum prints the enumerator, or the number with the suffix of its C type.
func (p *printer) enum(o *op, v uint64) {
	e := o.enum
	if i, ok := slices.BinarySearch(e.values, v&ones(e.width)); ok {
		p.dst = append(p.dst, e.names[i]...)
		return
	}
	p.decimal(o, v)
	if e.width == 64 {
		if !o.signed {
			p.dst = append(p.dst, 'U')
		}
		p.dst = append(p.dst, "LL"...)
	}
}
