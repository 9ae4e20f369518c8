package compiler

import (
	"github.com/cilium/ebpf/btf"
)

// MaxTypeDepth bounds the nesting of typedefs, qualifiers and structures that is
// followed. Broken BTF may have cycles.
const MaxTypeDepth = 32

// IsVoid reports whether t is void.
func IsVoid(t btf.Type) bool {
	_, ok := btf.As[*btf.Void](t)
	return ok
}

// Members returns the members of a struct or union, or false for other
// types.
func Members(t btf.Type) ([]btf.Member, bool) {
	switch t := btf.UnderlyingType(t).(type) {
	case *btf.Struct:
		return t.Members, true
	case *btf.Union:
		return t.Members, true
	}
	return nil, false
}

// IsUnion reports whether t is a union.
func IsUnion(t btf.Type) bool {
	_, ok := btf.As[*btf.Union](t)
	return ok
}

// IsChar reports whether t is char, which makes a pointer to it a string.
func IsChar(t btf.Type) bool {
	i, ok := btf.As[*btf.Int](t)
	return ok && i.Size == 1 && i.Name == "char"
}

// Scalar describes how an integer, enum, bool or pointer is read as a number.
type Scalar struct {
	Size   int  // bytes of its type: 1, 2, 4 or 8
	Signed bool // whether the sign is extended
	Bool   bool // whether it holds 0 or 1
	// Shift and Bits are the position and width of a bitfield within the 8
	// bytes that are loaded. Bits is 0 for a plain value.
	Shift, Bits int
}

// Width returns the number of bits that the value has.
func (s *Scalar) Width() int {
	if s.Bits != 0 {
		return s.Bits
	}
	return s.Size * 8
}

// IsField reports whether the number has fewer bits than its type.
func (s *Scalar) IsField() bool { return s.Width() != 8*s.Size }

// MemberPlace is the place of a member in its structure.
type MemberPlace struct {
	Member  btf.Member
	Offset  btf.Bits // from the start of the structure
	InUnion bool
}

// MemberOffset returns the offset in bytes of a member of a struct of the
// kernel. The member may be in nested structs and unions without a name.
func MemberOffset(types *btf.Spec, structure, member string) (int, bool) {
	var s *btf.Struct
	if types.TypeByName(structure, &s) != nil {
		return 0, false
	}
	at, ok := FindMember(s, member)
	return int(at.Offset.Bytes()), ok
}

// FindMember looks up a member by name, also in anonymous structs and unions.
func FindMember(t btf.Type, name string) (MemberPlace, bool) {
	return findMemberIn(t, name, map[btf.Type]bool{}, 0)
}

// findMemberIn skips the structures that it has seen. In broken BTF a structure may
// contain itself, or the number of paths to it may be exponential.
func findMemberIn(t btf.Type, name string, seen map[btf.Type]bool, depth int) (MemberPlace, bool) {
	for _, m := range UnseenMembers(t, seen, depth) {
		if m.Name == name {
			return MemberPlace{Member: m, Offset: m.Offset, InUnion: IsUnion(t)}, true
		}
		if m.Name != "" {
			continue
		}
		if at, ok := findMemberIn(m.Type, name, seen, depth+1); ok {
			at.Offset += m.Offset
			at.InUnion = at.InUnion || IsUnion(t)
			return at, true
		}
	}
	return MemberPlace{}, false
}

// UnseenMembers returns the members of a structure on the first visit, and nil on later
// ones.
func UnseenMembers(t btf.Type, seen map[btf.Type]bool, depth int) []btf.Member {
	t = btf.UnderlyingType(t)
	if seen[t] || depth > MaxTypeDepth {
		return nil
	}
	members, ok := Members(t)
	if ok {
		seen[t] = true
	}
	return members
}
