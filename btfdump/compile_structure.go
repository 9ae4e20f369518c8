package btfdump

import (
	"fmt"

	"github.com/cilium/ebpf/btf"
)

// structure compiles a struct or a union, or reuses the code of an earlier occurrence.
func (c *compiler) structure(t btf.Type, members []btf.Member, size uint32, tail bool) (op, error) {
	key := spanKey{t, tail}
	s, ok := c.spans[key]
	if ok {
		c.values += s.values
	} else {
		var err error
		if s, err = c.members(t, members, size, tail); err != nil {
			return op{}, err
		}
		c.spans[key] = s
	}
	return op{kind: kindStructure, size: size, first: s.first, n: s.n, tail: s.tail}, nil
}

func (c *compiler) members(t btf.Type, members []btf.Member, size uint32, tail bool) (span, error) {
	if err := c.enter(); err != nil {
		return span{}, err
	}
	defer c.leave()

	_, union := t.(*btf.Union)
	before := c.values
	s := span{first: c.reserve(len(members)), n: uint32(len(members))}
	for i, m := range members {
		last := i == len(members)-1
		o, err := c.member(m, size, tail && (union || last))
		if err != nil {
			return span{}, fmt.Errorf("member %q: %w", m.Name, err)
		}
		s.tail = s.tail || o.tail
		c.ops[int(s.first)+i] = o
	}
	s.values = c.values - before
	return s, nil
}

// member compiles one member of a structure of size bytes.
func (c *compiler) member(m btf.Member, size uint32, tail bool) (op, error) {
	o, err := c.value(m.Type, tail)
	if err != nil {
		return op{}, err
	}
	o.setLabel(m.Name, c.cast(m.Type))
	o.off = uint32(m.Offset / 8)

	end := uint64(m.Offset) + 8*uint64(o.size)
	if m.BitfieldSize != 0 || m.Offset%8 != 0 {
		if err := o.setBitfield(m); err != nil {
			return op{}, err
		}
		end = uint64(m.Offset) + uint64(o.width)
	}
	if end > 8*uint64(size) {
		return op{}, errOutside
	}
	return o, nil
}

// setBitfield sets the width and the shift of o if the member is a bitfield.
func (o *op) setBitfield(m btf.Member) error {
	bits := uint64(m.BitfieldSize)
	if bits == 0 {
		bits = 8 * uint64(o.size)
	}
	switch o.kind {
	case kindInt, kindWide, kindEnum:
	default:
		return errBitfield
	}
	if bits > 128 || bits > 8*uint64(o.size) {
		return errBitfield
	}
	o.width = uint8(bits)
	o.shift = uint8(m.Offset % 8)
	o.size = (uint32(o.shift) + uint32(o.width) + 7) / 8
	return nil
}

// variable compiles a global variable. Its label is its declaration.
func (c *compiler) variable(v *btf.Var, tail bool) (op, error) {
	o, err := c.value(v.Type, tail)
	if err != nil {
		return op{}, fmt.Errorf("variable %q: %w", v.Name, err)
	}
	cast := c.cast(v.Type)
	decl := linkage(v.Linkage) + cast + " " + Plain(v.Name) + " = "
	o.name = uint32(len(decl))
	o.label = decl + "(" + cast + ")"
	return o, nil
}

// section compiles a data section. Its variables are all at the outermost level.
func (c *compiler) section(ds *btf.Datasec) (op, error) {
	label := `SEC("` + Plain(ds.Name) + `") `
	o := op{
		kind:  kindSection,
		label: label,
		name:  uint32(len(label)),
		size:  ds.Size,
		n:     uint32(len(ds.Vars)),
	}
	o.first = c.reserve(len(ds.Vars))
	for i, vs := range ds.Vars {
		v, err := c.sectionEntry(vs.Type)
		if err != nil {
			return op{}, err
		}
		v.off = vs.Offset
		end := uint64(v.off) + uint64(v.size)
		if end > maxSize {
			return op{}, errTooLarge
		}
		// The kernel's own sections have size 0 in their BTF.
		o.size = max(o.size, uint32(end))
		c.ops[int(o.first)+i] = v
		c.vars = append(c.vars, Plain(ownName(vs.Type)))
	}
	return o, nil
}

func (c *compiler) sectionEntry(t btf.Type) (op, error) {
	v, ok := t.(*btf.Var)
	if !ok {
		return op{kind: kindNothing, label: Decl(t, "")}, nil
	}
	// The next variable follows, so no array here is flexible.
	return c.variable(v, false)
}
