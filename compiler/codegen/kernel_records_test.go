package codegen

import (
	"fmt"

	"github.com/cilium/ebpf/btf"
)

// fill lays out the members of a structure as C does.
func (m *typeMaker) fill(t *cType, members int, packed bool) {
	t.align = 1
	end := 0 // in bits
	for range members {
		member := cMember{typ: m.member()}
		named := member.typ.kind != cRecord || member.typ.name != "" || m.rnd.IntN(2) == 0
		if named {
			m.names++
			member.name = fmt.Sprintf("m%d", m.names)
		}
		if k := member.typ.kind; (k == cInt || k == cBool || k == cEnum) && !packed && m.rnd.IntN(3) == 0 {
			member.bits = 1 + m.rnd.IntN(8*member.typ.size)
			if k == cBool {
				member.bits = 1
			}
		}
		t.place(&member, &end, packed)
		t.members = append(t.members, member)
	}
	t.size = (end + 8*t.align - 1) / (8 * t.align) * t.align
	t.describe()
}

// place determines the offset of the next member.
func (t *cType) place(m *cMember, end *int, packed bool) {
	at, unit := *end, 8*m.typ.align
	if _, union := t.as.(*btf.Union); union {
		at = 0
	}
	switch size := 8 * m.typ.size; {
	case m.bits != 0 && at/size == (at+m.bits-1)/size: // in one unit of its type
	case packed:
		at = (at + 7) &^ 7
	default:
		at = (at + unit - 1) / unit * unit
	}
	if !packed {
		t.align = max(t.align, m.typ.align)
	}
	m.offset = at
	size := m.bits
	if size == 0 {
		size = 8 * m.typ.size
	}
	*end = max(*end, at+size)
}

// describe adds the layout to the BTF.
func (t *cType) describe() {
	var members []btf.Member
	for _, m := range t.members {
		members = append(members, btf.Member{
			Name: m.name, Type: m.typ.as, Offset: btf.Bits(m.offset), BitfieldSize: btf.Bits(m.bits),
		})
	}
	switch as := t.as.(type) {
	case *btf.Struct:
		as.Size, as.Members = uint32(t.size), members
	case *btf.Union:
		as.Size, as.Members = uint32(t.size), members
	}
}

// find looks up a member, also in members without names.
func (t *cType) find(name string) (cMember, bool) {
	for _, m := range t.members {
		if m.name == name {
			return m, true
		}
		if m.name != "" || m.typ.kind != cRecord {
			continue
		}
		if inner, ok := m.typ.find(name); ok {
			inner.offset += m.offset
			return inner, true
		}
	}
	return cMember{}, false
}

// names returns the names that find finds.
func (t *cType) names() []string {
	var names []string
	for _, m := range t.members {
		if m.name != "" {
			names = append(names, m.name)
		} else {
			names = append(names, m.typ.names()...)
		}
	}
	return names
}

// unaligned reports whether a number in a type at this offset is not aligned as
// its own type requires: then the calling convention passes the structure in
// memory.
func (t *cType) unaligned(at int) bool {
	switch t.kind {
	case cArray:
		return t.to.unaligned(at) // gcc and clang check the first element
	case cRecord:
		for _, m := range t.members {
			if m.bits == 0 && m.typ.unaligned(at+m.offset/8) {
				return true
			}
		}
		return false
	}
	return at%t.size != 0
}
