package compiler

import "github.com/cilium/ebpf/btf"

// maxTypeDepth bounds walks through typedefs, qualifiers and records inside each
// other in broken BTF.
const maxTypeDepth = 32

func isVoid(t btf.Type) bool {
	_, ok := btf.As[*btf.Void](t)
	return ok
}

// recordMembers is the members of a struct or union.
func recordMembers(t btf.Type) ([]btf.Member, bool) {
	switch t := btf.UnderlyingType(t).(type) {
	case *btf.Struct:
		return t.Members, true
	case *btf.Union:
		return t.Members, true
	}
	return nil, false
}

func isUnion(t btf.Type) bool {
	_, ok := btf.As[*btf.Union](t)
	return ok
}

func isRecord(t btf.Type) bool {
	_, ok := recordMembers(t)
	return ok
}

// isChar says whether t is char, which makes a pointer to it a string.
func isChar(t btf.Type) bool {
	i, ok := btf.As[*btf.Int](t)
	return ok && i.Size == 1 && i.Name == "char"
}

// tagged says whether a pointer carries a type tag such as user or percpu,
// which forbids a direct load through it.
func tagged(t btf.Type) bool {
	p, ok := btf.As[*btf.Pointer](t)
	if !ok {
		return false
	}
	for t, i := p.Target, 0; i < maxTypeDepth; i++ {
		switch v := t.(type) {
		case *btf.TypeTag:
			return true
		case *btf.Const:
			t = v.Type
		case *btf.Volatile:
			t = v.Type
		case *btf.Restrict:
			t = v.Type
		case *btf.Typedef:
			t = v.Type
		default:
			return false
		}
	}
	return false
}

// Scalar is how an integer, enum, bool or pointer reads as a number.
type Scalar struct {
	Size   int  // bytes of its type: 1, 2, 4 or 8
	Signed bool // extend the sign
	Bool   bool // holds 0 and 1
	// Shift and Bits are the bitfield within the 8 bytes that are loaded;
	// Bits is 0 for a plain value.
	Shift, Bits int
}

// width is the number of bits that count.
func (s *Scalar) width() int {
	if s.Bits != 0 {
		return s.Bits
	}
	return s.Size * 8
}

// isField says whether the number has not all the bits of its type.
func (s *Scalar) isField() bool { return s.width() != 8*s.Size }

// scalarOf is nil for a type that is not one number of at most 8 bytes.
func scalarOf(t btf.Type) *Scalar {
	switch t := btf.UnderlyingType(t).(type) {
	case *btf.Int:
		if wordSize(t.Size) {
			return &Scalar{Size: int(t.Size), Signed: t.Encoding == btf.Signed, Bool: t.Encoding == btf.Bool}
		}
	case *btf.Enum:
		if wordSize(t.Size) {
			return &Scalar{Size: int(t.Size), Signed: enumSigned(t)}
		}
	case *btf.Pointer:
		return &Scalar{Size: 8}
	}
	return nil
}

func wordSize(n uint32) bool { return n == 1 || n == 2 || n == 4 || n == 8 }

// enumSigned looks at the enumerators too: the BTF of kernels before 6.0
// carries no enum sign and stores -1 as 0xffffffff.
func enumSigned(e *btf.Enum) bool {
	if e.Signed {
		return true
	}
	for _, v := range e.Values {
		if e.Size == 4 && v.Value >= 1<<32-4096 && v.Value < 1<<32 {
			return true
		}
	}
	return false
}
