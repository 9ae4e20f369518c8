package resolve

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// takers returns the functions with a parameter that points to objects.
func (w *follower) takers(types *btf.Spec) ([]*btf.Func, error) {
	all, err := w.mayTake(types)
	return slices.DeleteFunc(all, func(fn *btf.Func) bool { return !w.takesAny(fn) }), err
}

// mayTake returns functions, among them all that have such a parameter.
func (w *follower) mayTake(types *btf.Spec) (all []*btf.Func, err error) {
	if types == w.target.Kernel && w.target.FuncsTaking != nil {
		if ids, known := w.target.FuncsTaking(w.structure.Name); known {
			return typesByID[*btf.Func](types, ids)
		}
	}
	for typ, err := range types.All() {
		if err != nil {
			return nil, err
		}
		if fn, ok := typ.(*btf.Func); ok {
			all = append(all, fn)
		}
	}
	return all, nil
}

// ofKernel reports whether a type of a module's BTF is one of vmlinux, on which it is
// based.
func (w *follower) ofKernel(fn *btf.Func) bool {
	return slices.Contains(funcsByName(w.target.Kernel, fn.Name), fn)
}

func (w *follower) takesAny(fn *btf.Func) bool {
	proto, ok := fn.Type.(*btf.FuncProto)
	ofTracepoint := slices.ContainsFunc(TracepointNames, func(prefix string) bool { return strings.HasPrefix(fn.Name, prefix) })
	return ok && !ofTracepoint && slices.ContainsFunc(proto.Params, func(p btf.FuncParam) bool { return w.takes(p.Type) })
}

// wanted reports whether a function is one of those that --in chooses.
func (w *follower) wanted(module, name string) bool {
	if len(w.In) == 0 {
		return true
	}
	return slices.ContainsFunc(w.In, func(glob string) bool {
		of, rest, qualified := strings.Cut(glob, ":")
		if !qualified {
			return spec.Matches(glob, name)
		}
		return of == cmp.Or(module, vmlinux) && spec.Matches(rest, name)
	})
}

// pointedStructure returns the structure that a pointer points to, or nil.
func pointedStructure(t btf.Type) *btf.Struct {
	ptr, ok := btf.As[*btf.Pointer](t)
	if !ok {
		return nil
	}
	structure, ok := btf.UnderlyingType(ptr.Target).(*btf.Struct)
	if !ok || structure.Name == "" {
		return nil
	}
	return structure
}

// takes reports whether a type is that of pointers to the objects. Modules have
// copies of some of the kernel's types.
func (w *follower) takes(t btf.Type) bool {
	structure := pointedStructure(t)
	return structure != nil && (structure == w.structure || structure.Name == w.structure.Name && structure.Size == w.structure.Size)
}
