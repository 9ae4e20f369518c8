package compiler

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// Function is a kernel function that can be traced.
type Function struct {
	Name   string
	Module string // "" is vmlinux
	Type   *btf.Func
	Signature
	// Copies is the number of functions of this name in the BTF. All have
	// the same prototype.
	Copies int
}

// FindFunction binds the function name of a spec. The error is a [*spec.Error].
func FindFunction(trace *spec.Trace, target *Target) (*Function, error) {
	name := trace.Func
	if base := kallsyms.Base(name.Name); base != name.Name {
		return nil, spec.Errorf(trace.Text, name.At,
			"%s is a copy that the compiler made of %s, and may have fewer arguments than its type says", name.Name, base)
	}
	module, types, err := funcTypes(trace, target)
	if err != nil {
		return nil, err
	}
	if err := checkSymbols(trace, target, module); err != nil {
		return nil, err
	}
	if err := samePrototype(trace, types); err != nil {
		return nil, err
	}
	proto, ok := types[0].Type.(*btf.FuncProto)
	if !ok {
		return nil, spec.Errorf(trace.Text, name.At, "%s has no prototype in BTF", name.Name)
	}
	sig, err := place(proto, target.Arch)
	if err != nil {
		return nil, spec.Errorf(trace.Text, name.At, "%s has a signature that BTF does not describe: %v", name.Name, err)
	}
	return &Function{Name: name.Name, Module: module, Type: types[0], Signature: *sig, Copies: len(types)}, nil
}

// funcTypes finds the functions of the spec's name in vmlinux, or else in the
// module that kallsyms names.
func funcTypes(trace *spec.Trace, target *Target) (module string, types []*btf.Func, err error) {
	name := trace.Func.Name
	if types = funcsByName(target.Kernel, name); len(types) > 0 {
		return "", types, nil
	}
	symbols := target.symbols(name)
	for _, s := range symbols {
		if s.Module == "" || !s.Text() || target.Module == nil {
			continue
		}
		types, err := target.Module(s.Module)
		if errors.Is(err, ErrNoModuleBTF) {
			return "", nil, spec.Errorf(trace.Text, trace.Func.At,
				"%s is in module %s, which has no BTF, so its arguments are not known", name, s.Module).
				WithHint("the kernel must be built with CONFIG_DEBUG_INFO_BTF_MODULES (5.11 and later)")
		}
		if err != nil {
			return "", nil, fmt.Errorf("read the BTF of module %s: %w", s.Module, err)
		}
		if funcs := funcsByName(types, name); len(funcs) > 0 {
			return s.Module, funcs, nil
		}
	}
	return "", nil, target.unknownFunction(trace, symbols)
}

func funcsByName(types *btf.Spec, name string) []*btf.Func {
	found, err := types.AnyTypesByName(name)
	if err != nil {
		return nil
	}
	var funcs []*btf.Func
	for _, t := range found {
		if f, ok := t.(*btf.Func); ok {
			funcs = append(funcs, f)
		}
	}
	return funcs
}

// unknownFunction explains why a name is no traceable function.
func (t *Target) unknownFunction(trace *spec.Trace, symbols []kallsyms.Symbol) error {
	name := trace.Func.Name
	fail := func(format string, args ...any) *spec.Error {
		return spec.Errorf(trace.Text, trace.Func.At, format, args...)
	}
	switch {
	case slices.ContainsFunc(symbols, kallsyms.Symbol.Text):
		return fail("%s has no type in BTF, so its arguments are not known (it is not written in C, or BTF left it out)", name)
	case len(symbols) > 0:
		return fail("%s is data, not a function", name)
	}
	if t.Symbols != nil {
		if copies := t.Symbols.Suffixed(name); len(copies) > 0 {
			return fail("this kernel has %s only as %s, with arguments that may differ from its type", name, copies[0].Name)
		}
	}
	err := fail("there is no function %s in this kernel", name)
	if near, ok := spec.Nearest(name, t.functionNames()); ok {
		return err.WithHint("did you mean '%s'?", near)
	}
	return err
}

// functionNames iterates over the functions of vmlinux. It decodes all of the
// BTF: for error messages only.
func (t *Target) functionNames() iter.Seq[string] {
	return func(yield func(string) bool) {
		for typ, err := range t.Kernel.All() {
			if err != nil {
				return
			}
			if f, ok := typ.(*btf.Func); ok && !yield(f.Name) {
				return
			}
		}
	}
}

func (t *Target) symbols(name string) []kallsyms.Symbol {
	if t.Symbols == nil {
		return nil
	}
	return t.Symbols.Lookup(name)
}

// checkSymbols refuses a function that is not in memory, or is there more than
// once: the kernel would attach to the first one without a word.
func checkSymbols(trace *spec.Trace, target *Target, module string) error {
	if target.Symbols == nil {
		return nil
	}
	name := trace.Func.Name
	var places []string
	for _, s := range target.symbols(name) {
		if s.Text() && s.Module == module {
			places = append(places, fmt.Sprintf("%#x", s.Addr))
		}
	}
	switch len(places) {
	case 0:
		if copies := target.Symbols.Suffixed(name); len(copies) > 0 {
			return spec.Errorf(trace.Text, trace.Func.At,
				"this kernel has %s only as %s, with arguments that may differ from its type", name, copies[0].Name)
		}
		return spec.Errorf(trace.Text, trace.Func.At,
			"%s has a type but no code in this kernel: it was inlined everywhere, or is start-up code that was freed", name)
	case 1:
		return nil
	}
	where := strings.Join(places, ", ")
	if target.Symbols.Hidden() {
		where = "addresses are hidden: " + target.Symbols.NeedAddresses().Error()
	}
	return spec.Errorf(trace.Text, trace.Func.At,
		"there are %d functions called %s in this kernel (%s), and a name cannot tell them apart", len(places), name, where)
}

// samePrototype refuses a name that BTF has with different prototypes.
func samePrototype(trace *spec.Trace, types []*btf.Func) error {
	first := prototype(types[0])
	for _, t := range types[1:] {
		if p := prototype(t); p != first {
			return spec.Errorf(trace.Text, trace.Func.At,
				"%s is in BTF with different prototypes, and a name cannot tell them apart: (%s) and (%s)",
				trace.Func.Name, first, p)
		}
	}
	return nil
}

// prototype lists the parameters of a function, each with its name and what
// kind of type it has.
func prototype(f *btf.Func) string {
	proto, ok := f.Type.(*btf.FuncProto)
	if !ok {
		return ""
	}
	var params []string
	for _, p := range proto.Params {
		params = append(params, fmt.Sprintf("%s: %s", p.Name, describe(p.Type)))
	}
	return strings.Join(params, ", ")
}
