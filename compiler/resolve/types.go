package resolve

import (
	"iter"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

func isStructure(t btf.Type) bool {
	_, ok := compiler.Members(t)
	return ok
}

// pointsToStructure reports whether t is a pointer to a struct or union.
func pointsToStructure(t btf.Type) bool {
	ptr, ok := btf.As[*btf.Pointer](t)
	return ok && isStructure(ptr.Target)
}

// tagged reports whether a pointer carries a type tag such as user or percpu,
// which forbids a direct load through it.
func tagged(t btf.Type) bool { return findTag(t, func(string) bool { return true }) }

// hasTag reports whether a pointer carries this type tag.
func hasTag(t btf.Type, tag string) bool {
	return findTag(t, func(value string) bool { return value == tag })
}

// findTag reports whether a pointer has a type tag for which is returns true.
func findTag(t btf.Type, is func(value string) bool) bool {
	p, ok := btf.As[*btf.Pointer](t)
	if !ok {
		return false
	}
	for t, i := p.Target, 0; i < compiler.MaxTypeDepth; i++ {
		switch v := t.(type) {
		case *btf.TypeTag:
			if is(v.Value) {
				return true
			}
			t = v.Type
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

// scalarOf returns how a value of a type is read as a number, or nil if the type is
// not one number of at most 8 bytes.
func scalarOf(t btf.Type) *compiler.Scalar {
	switch t := btf.UnderlyingType(t).(type) {
	case *btf.Int:
		if wordSize(t.Size) {
			return &compiler.Scalar{Size: int(t.Size), Signed: t.Encoding&btf.Signed != 0, Bool: t.Encoding == btf.Bool}
		}
	case *btf.Enum:
		if wordSize(t.Size) {
			return &compiler.Scalar{Size: int(t.Size), Signed: enumSigned(t)}
		}
	case *btf.Pointer:
		return &compiler.Scalar{Size: 8}
	}
	return nil
}

func wordSize(n uint32) bool { return n == 1 || n == 2 || n == 4 || n == 8 }

// enumSigned reports whether an enum is signed. It checks the enumerators too:
// the BTF of kernels before 6.0 has no sign for enums and stores -1 as
// 0xffffffff.
func enumSigned(e *btf.Enum) bool {
	return e.Signed || e.Size == 4 && slices.ContainsFunc(e.Values, func(v btf.EnumValue) bool { return v.Value >= 1<<32-4096 && v.Value < 1<<32 })
}

// These are kinds in addition to those of [TypeKind]: functions, typedefs alone, and
// variables with their sections.
const (
	FuncKind    = "func"
	TypedefKind = "typedef"
	VarKind     = "var"
)

// typeNames lists the names of the types of a kind, some more than once.
func typeNames(t *compiler.Target, types *btf.Spec, kind string) iter.Seq2[string, error] {
	if types == t.Kernel && t.TypeNames != nil {
		if names, ok := t.TypeNames(kind); ok {
			return sound(names)
		}
	}
	return func(yield func(string, error) bool) {
		for typ, err := range types.All() {
			if err != nil {
				yield("", err)
				return
			}
			if hasKind(typ, kind) && !yield(typ.TypeName(), nil) {
				return
			}
		}
	}
}

// NearestName returns the name nearest to a word among the types of some kinds of vmlinux
// or a module.
func NearestName(t *compiler.Target, types *btf.Spec, word string, kinds ...string) (name string, ok bool) {
	return spec.Nearest(word, func(yield func(string) bool) {
		for _, kind := range kinds {
			for name := range untilError(typeNames(t, types, kind)) {
				if !yield(name) {
					return
				}
			}
		}
	})
}

// NearestType returns the name of a type of the kernel, with its keyword, that is nearest
// to a word. The kernel's types must be known as a whole.
func NearestType(t *compiler.Target, word string) (name string, ok bool) {
	near, ok := NearestName(t, t.Kernel, word, "struct", "union", "enum", "")
	if !ok {
		return "", false
	}
	named, _ := t.Kernel.AnyTypesByName(near)
	for _, typ := range named {
		if kind, ok := TypeKind(typ); ok {
			return strings.TrimSpace(kind + " " + near), true
		}
	}
	return "", false
}

func hasKind(typ btf.Type, kind string) bool {
	switch typ.(type) {
	case *btf.Func:
		return kind == FuncKind
	case *btf.Var, *btf.Datasec:
		return kind == VarKind
	case *btf.Typedef:
		if kind == TypedefKind {
			return true
		}
	}
	k, ok := TypeKind(typ)
	return ok && k == kind
}

// sound returns the names, each with a nil error.
func sound(names iter.Seq[string]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for name := range names {
			if !yield(name, nil) {
				return
			}
		}
	}
}

// untilError returns the names up to the first error.
func untilError(names iter.Seq2[string, error]) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name, err := range names {
			if err != nil || !yield(name) {
				return
			}
		}
	}
}

// TypeID returns the id of the only type with this name whose Go type is that of
// kind, or 0 if there is none or more than one.
func TypeID(types *btf.Spec, name string, kind btf.Type) btf.TypeID {
	if types.TypeByName(name, &kind) != nil {
		return 0
	}
	id, err := types.TypeID(kind)
	if err != nil {
		return 0
	}
	return id
}
