package compiler

import (
	"iter"

	"github.com/cilium/ebpf/btf"
)

// FuncKind is the kind of functions, beside those of [TypeKind].
const FuncKind = "func"

// typeNames lists the names of the types of a kind, some more than once.
func (t *Target) typeNames(types *btf.Spec, kind string) iter.Seq2[string, error] {
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

func hasKind(typ btf.Type, kind string) bool {
	if _, ok := typ.(*btf.Func); ok {
		return kind == FuncKind
	}
	k, ok := TypeKind(typ)
	return ok && k == kind
}

// sound are names without an error.
func sound(names iter.Seq[string]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for name := range names {
			if !yield(name, nil) {
				return
			}
		}
	}
}

// readable are the names up to the first error.
func readable(names iter.Seq2[string, error]) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name, err := range names {
			if err != nil || !yield(name) {
				return
			}
		}
	}
}
