package listing

import (
	"iter"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime"
)

// everywhere returns globs for all functions of the kernel and, if it is the running
// one, of its modules.
func everywhere(c target.Choice) []string {
	globs := []string{"*"}
	if c.Types == "" {
		for _, m := range runtime.LoadedModules() {
			globs = append(globs, m+":*")
		}
	}
	return globs
}

// wantedType is the type of an argument: a type with a name, and the pointers to it.
type wantedType struct {
	named []btf.Type // of the kernel or the module; several types may have the name
	stars int
}

// parseWanted looks up a type as --takes has it, among the kernel's types and those of
// a module unless that is nil. Qualifiers do not matter.
func parseWanted(text string, kernel *compiler.Target, module *btf.Spec) (*wantedType, error) {
	name, stars := pointed(text)
	if name == "" || strings.ContainsAny(name, "*[]()") {
		return nil, exit.Usagef("--takes is %q: it must be the name of a type, and a star for each pointer to it, as in 'struct sk_buff *'", text)
	}
	w := &wantedType{stars: stars}
	if name == "void" && w.stars > 0 {
		w.named = []btf.Type{(*btf.Void)(nil)}
		return w, nil
	}
	found, err := typesNamed(kernel, kernel.Kernel, name)
	if module != nil {
		if own, ownErr := typesNamed(kernel, module, name); ownErr == nil {
			found, err = append(found, own...), nil
		}
	}
	w.named = found
	return w, err
}

// isTypeOf reports whether an argument has the type. Typedefs and qualifiers are looked
// through.
func (w *wantedType) isTypeOf(t btf.Type) bool {
	for stars := w.stars; ; {
		if t = btfdump.Unqualified(t); t == nil {
			t = (*btf.Void)(nil)
		}
		if stars == 0 && slices.ContainsFunc(w.named, func(n btf.Type) bool { return sameNamed(n, t) }) {
			return true
		}
		switch v := t.(type) {
		case *btf.Typedef:
			t = v.Type
		case *btf.Pointer:
			t = v.Target
			stars--
		default:
			return false
		}
		if stars < 0 {
			return false
		}
	}
}

// sameNamed reports whether two types are one, or of one kind and name: modules have
// copies of some of the kernel's types.
func sameNamed(a, b btf.Type) bool {
	if _, void := a.(*btf.Void); void {
		_, ok := b.(*btf.Void)
		return ok
	}
	ka, ok := typeKind(a)
	kb, okb := typeKind(b)
	return a == b || ok && okb && ka == kb && isTypedef(a) == isTypedef(b) && a.TypeName() == b.TypeName()
}

// taking returns those of the functions, in the module of a trace or in the kernel,
// that have arguments of all the types.
func taking(names, takes []string, t *spec.Trace, kernel *compiler.Target) ([]string, error) {
	types, module := kernel.Kernel, (*btf.Spec)(nil)
	if t.Module.Name != "" && kernel.Module != nil {
		if of, err := kernel.Module(t.Module.Name); err == nil {
			types, module = of, of
		}
	}
	var wanted []*wantedType
	for _, text := range takes {
		w, err := parseWanted(text, kernel, module)
		if err != nil {
			if t.Module.Name != "" || inModules(text, kernel) {
				return nil, nil // another module may have the type
			}
			return nil, err
		}
		wanted = append(wanted, w)
	}
	take := map[string]bool{}
	for typ, err := range mayTake(wanted, types, t, kernel) {
		if err != nil {
			return nil, err
		}
		if name, params, ok := signature(typ, t.Tracepoint); ok && takesAll(params, wanted) {
			take[name] = true
		}
	}
	return slices.DeleteFunc(names, func(n string) bool {
		return !take[n] || strings.HasPrefix(n, "__bpf_trace_") // it has a tracepoint's arguments
	}), nil
}

// mayTake iterates over types among which are those of the functions, or tracepoints, that
// have arguments of all the types. Decoding all types takes a third of a second.
func mayTake(wanted []*wantedType, types *btf.Spec, t *spec.Trace, kernel *compiler.Target) iter.Seq2[btf.Type, error] {
	at := slices.IndexFunc(wanted, (*wantedType).isPointerToStruct)
	if at < 0 || types != kernel.Kernel || t.Tracepoint || kernel.FuncsTaking == nil {
		return types.All()
	}
	ids, known := kernel.FuncsTaking(wanted[at].named[0].TypeName())
	if !known {
		return types.All()
	}
	return func(yield func(btf.Type, error) bool) {
		for _, id := range ids {
			if !yield(types.TypeByID(id)) {
				return
			}
		}
	}
}

// isPointerToStruct reports whether the type is that of pointers to a struct.
func (w *wantedType) isPointerToStruct() bool {
	for _, t := range w.named {
		if _, ok := t.(*btf.Struct); !ok {
			return false
		}
	}
	return w.stars == 1 && len(w.named) > 0
}

// signature returns the name and the parameters of a function, or of a tracepoint, if
// that is what a type is. A tracepoint has no parameter for the data of its probes.
func signature(t btf.Type, tracepoint bool) (name string, params []btf.FuncParam, ok bool) {
	var of btf.Type
	data := 0 // parameters for the data
	switch t := t.(type) {
	case *btf.Func:
		name, of, ok = t.Name, t.Type, !tracepoint
	case *btf.Typedef:
		if pointer, isPointer := t.Type.(*btf.Pointer); isPointer && tracepoint {
			name, ok = strings.CutPrefix(t.Name, "btf_trace_")
			of, data = pointer.Target, 1
		}
	}
	proto, isProto := of.(*btf.FuncProto)
	if !ok || !isProto {
		return "", nil, false
	}
	return name, proto.Params[min(data, len(proto.Params)):], true
}

// takesAll reports whether there are parameters of all the types.
func takesAll(params []btf.FuncParam, wanted []*wantedType) bool {
	for _, w := range wanted {
		if !slices.ContainsFunc(params, func(p btf.FuncParam) bool { return w.isTypeOf(p.Type) }) {
			return false
		}
	}
	return true
}

// inModules reports whether a loaded module has a type that the kernel lacks.
func inModules(text string, kernel *compiler.Target) bool {
	return slices.ContainsFunc(modulesOf(kernel), func(m string) bool {
		types, err := kernel.Module(m)
		if err != nil {
			return false
		}
		_, err = parseWanted(text, kernel, types)
		return err == nil
	})
}

// noneTakes returns the error for types that no function takes.
func noneTakes(takes []string, kernel *compiler.Target) error {
	for _, text := range takes {
		w, err := parseWanted(text, kernel, nil)
		if err == nil && w.stars == 0 && slices.ContainsFunc(w.named, isStructure) {
			return exit.Usagef("no function takes %q by value: did you mean '%s *'?", text, strings.TrimSpace(btfdump.TypeName(w.named[0])))
		}
	}
	return exit.Usagef("no function that was looked at takes '%s'", strings.Join(takes, "' and '"))
}

// isStructure reports whether a type is a struct or union.
func isStructure(t btf.Type) bool {
	_, _, ok := membersOf(t)
	return ok
}
