package resolve

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// taker is a function with a parameter that points to objects.
type taker struct {
	*btf.Func
	module string // whose function it is, or "" for vmlinux
}

// takers returns the functions of the kernel and of Modules that take objects.
func (w *follower) takers() (all []taker, err error) {
	for _, module := range append([]string{""}, w.Modules...) {
		types := w.target.Kernel
		if module != "" {
			if types, err = w.target.Module(module); err != nil {
				continue // it has no types, or has gone
			}
		}
		may, err := w.mayTake(types)
		if err != nil {
			return nil, err
		}
		for _, fn := range may {
			if w.takesAny(fn) && (module == "" || !w.ofKernel(fn)) {
				all = append(all, taker{fn, module})
			}
		}
	}
	return all, nil
}

// Symbols returns the symbols that [Follow] needs, for reading a symbol table. target may
// have none; if more than these would be needed, they are all symbols.
func (f Following) Symbols(t *spec.Trace, target *compiler.Target) kallsyms.Wanted {
	w := newFollower(t, f, target)
	if w.start() != nil {
		return kallsyms.Wanted{}
	}
	takers, err := w.takers()
	if err != nil {
		return kallsyms.Wanted{}
	}
	wanted := []*spec.Trace{t}
	for _, taker := range takers {
		wanted = append(wanted, &spec.Trace{Func: spec.Ident{Name: taker.Name}})
	}
	return Symbols(wanted)
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

// wanted reports whether a function is one of those that --in chooses, and notes which
// of them do.
func (w *follower) wanted(module, name string) bool {
	chosen := len(w.In) == 0
	for _, glob := range w.In {
		of, rest, qualified := strings.Cut(glob, ":")
		if qualified && of != cmp.Or(module, vmlinux) {
			continue
		}
		if !qualified {
			rest = glob
		}
		if spec.Matches(rest, name) {
			chosen, w.matched[glob] = true, true
		}
	}
	return chosen
}

// unmatched returns an error if none of --in matches a function, and notes those that
// match none beside others that do.
func (w *follower) unmatched(found int, takers []taker) error {
	var names []string
	for _, t := range takers {
		names = append(names, t.Name)
	}
	for _, in := range w.In {
		if w.matched[in] {
			continue
		}
		err := spec.Errorf(in, spec.Span{Start: 0, End: len(in)}, "no function that takes struct %s * matches %s", w.structure.Name, in)
		module, name, qualified := strings.Cut(in, ":")
		near, ok := "", false
		if !qualified {
			near, ok = spec.Nearest(in, slices.Values(names))
		}
		switch {
		case ok:
			err = err.WithMeant("%s", near)
		case qualified && module != vmlinux && !slices.Contains(w.Modules, module):
			err = err.WithHint("module %s is not loaded", module)
		case qualified:
			err = err.WithHint("'%s' alone matches functions of the kernel and of all modules", name)
		}
		if found == 0 {
			return err
		}
		note := err.Msg
		if err.Hint != "" {
			note += ": " + err.Hint
		}
		w.plan.Notes = append(w.plan.Notes, note)
	}
	return nil
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
