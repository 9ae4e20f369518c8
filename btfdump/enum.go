package btfdump

import (
	"slices"
	"sort"

	"github.com/cilium/ebpf/btf"
)

// enumeration finds enumerators by value. Values are truncated to the width of
// the type because BTF of kernels before 6.0 has no sign for enums and stores
// negative enumerators of any width in 32 bits. An enum of 64 bits has no enumerators in
// such BTF, as it has only the lower halves of their values.
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
	// Of enumerators with the same value the first one is used.
	sort.SliceStable(values, func(i, j int) bool { return values[i].Value < values[j].Value })
	values = slices.CompactFunc(values, func(a, b btf.EnumValue) bool { return a.Value == b.Value })
	if e.Size == 8 && len(values) > 0 && values[len(values)-1].Value>>32 == 0 {
		// C gives an enum 8 bytes if a number needs them: BTF has only the lower halves.
		values = nil
	}

	n := &enumeration{width, make([]uint64, len(values)), make([]string, len(values))}
	for i, v := range values {
		n.values[i], n.names[i] = v.Value, Plain(v.Name)
	}
	return n
}

func (c *compiler) enumValue(e *btf.Enum) op {
	if e.Size > 8 {
		return op{kind: kindWide, size: e.Size} // only in invalid BTF
	}
	if c.enums[e] == nil {
		c.enums[e] = newEnumeration(e)
	}
	return op{kind: kindEnum, size: e.Size, signed: e.Signed, enum: c.enums[e]}
}

// enum prints the name of the enumerator, or the number with the suffix of its C
// type if no enumerator has this value.
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
