package compiler

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// candidates are the types and symbols that a function's name may mean.
type candidates struct {
	trace   *spec.Trace
	target  *Target
	module  string // "" is vmlinux
	from    *btf.Spec
	types   []*btf.Func       // of the name without suffixes
	symbols []kallsyms.Symbol // the code, of that module
}

func (c *candidates) errorf(format string, args ...any) *spec.Error {
	return spec.Errorf(c.trace.Text, c.trace.Func.At, format, args...)
}

// vmlinux is how a spec calls the kernel itself where a module may stand.
const vmlinux = "vmlinux"

// findCandidates looks in the module of the spec; else in vmlinux, and then in
// the module that the symbol table names.
func findCandidates(trace *spec.Trace, target *Target) (*candidates, error) {
	c := &candidates{trace: trace, target: target}
	base := kallsyms.Base(trace.Func.Name)
	symbols := target.symbols(trace.Func.Name)
	module := trace.Module.Name
	if module == "" || module == vmlinux {
		c.from, c.types = target.Kernel, funcsByName(target.Kernel, base)
	}
	if len(c.types) == 0 && module != vmlinux {
		if err := c.fromModules(module, base, symbols); err != nil {
			return nil, err
		}
	}
	if len(c.types) == 0 {
		return nil, target.unknownFunction(trace, symbols)
	}
	for _, s := range symbols {
		if s.Text() && s.Module == c.module {
			c.symbols = append(c.symbols, s)
		}
	}
	return c, nil
}

// fromModules takes the first module with code and types of that name.
func (c *candidates) fromModules(module, base string, symbols []kallsyms.Symbol) error {
	modules := []string{module}
	if module == "" {
		modules = nil
		for _, s := range symbols {
			if s.Module != "" && s.Text() && !slices.Contains(modules, s.Module) {
				modules = append(modules, s.Module)
			}
		}
	}
	if len(modules) > 1 {
		return c.errorf("%s is in the modules %s", c.trace.Func.Name, strings.Join(modules, ", ")).
			WithHint("say which one: %s:%s", modules[0], c.trace.Func.Name)
	}
	for _, m := range modules {
		if c.target.Module == nil {
			continue
		}
		types, err := c.target.Module(m)
		if errors.Is(err, ErrNoModuleBTF) {
			return c.noModule(m, symbols)
		}
		if err != nil {
			return fmt.Errorf("read the BTF of module %s: %w", m, err)
		}
		c.module, c.from, c.types = m, types, funcsByName(types, base)
		if len(c.types) > 0 {
			return nil
		}
	}
	return nil
}

// indexedWrong: btf.Spec takes the whole of such a name for the flavour of a
// type without a name, and finds it nowhere (cilium/ebpf 0.22).
func indexedWrong(name string) bool { return strings.LastIndex(name, "___") == 0 }

func funcsByName(types *btf.Spec, name string) []*btf.Func {
	var funcs []*btf.Func
	if indexedWrong(name) {
		for t, err := range types.All() {
			if f, ok := t.(*btf.Func); err == nil && ok && f.Name == name {
				funcs = append(funcs, f)
			}
		}
		return funcs
	}
	found, err := types.AnyTypesByName(name)
	if err != nil {
		return nil
	}
	for _, t := range found {
		if f, ok := t.(*btf.Func); ok {
			funcs = append(funcs, f)
		}
	}
	return funcs
}

// mostPrototypes is how many of one name are told apart: no kernel has more than
// a few.
const mostPrototypes = 100

// choose takes the prototype that has the arguments that the spec names.
func (c *candidates) choose() (*btf.Func, error) {
	var fitting []*btf.Func
	var all []string
	for _, t := range c.types {
		p := prototype(t)
		if slices.Contains(all, p) {
			continue
		}
		if all = append(all, p); len(all) > mostPrototypes {
			return nil, c.errorf("%s is in BTF with more than %d prototypes, and a name cannot tell them apart", c.trace.Func.Name, mostPrototypes)
		}
		if hasArguments(t, c.trace) {
			fitting = append(fitting, t)
		}
	}
	switch {
	case len(all) == 1:
		return c.types[0], nil
	case len(fitting) == 1 && len(c.symbols) <= 1:
		return fitting[0], nil
	case len(c.symbols) > 1:
		return nil, c.errorf("%s is in BTF with different prototypes and %d times in the kernel, and nothing tells which is which: (%s)",
			c.trace.Func.Name, len(c.symbols), strings.Join(all, ") and ("))
	}
	return nil, c.errorf("%s is in BTF with different prototypes, and a name cannot tell them apart: (%s)",
		c.trace.Func.Name, strings.Join(all, ") and (")).WithHint("name arguments that only one of them has")
}

// hasArguments says whether a function has all the arguments that a spec names.
func hasArguments(t *btf.Func, trace *spec.Trace) bool {
	proto, ok := t.Type.(*btf.FuncProto)
	if !ok {
		return false
	}
	has := true
	for _, item := range trace.AllItems() {
		spec.Walk(item.Value, func(e spec.Expr) {
			if arg, ok := e.(*spec.Arg); ok {
				has = has && slices.ContainsFunc(proto.Params, func(p btf.FuncParam) bool { return p.Name == arg.Name.Name })
			}
		})
	}
	return has
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

// addresses finds where the code is, if the name is not enough to say it. A
// name that the kernel has several times is never left to it: it would attach
// to the first one without a word.
func (c *candidates) addresses() ([]uint64, error) {
	name := c.trace.Func.Name
	table := c.target.Symbols
	switch {
	case table == nil:
		return nil, nil
	case len(c.symbols) == 0:
		if copies := table.Suffixed(name); len(copies) > 0 {
			return nil, c.onlyCopies(copies)
		}
		return nil, c.errorf("%s has a type but no code in this kernel: it was inlined everywhere, or is start-up code that was freed", name)
	case len(c.symbols) == 1 && len(c.target.symbols(name)) == 1:
		return nil, nil
	}
	places := c.places()
	switch {
	case table.Hidden() && len(c.symbols) > 1:
		return nil, c.errorf("there are %d functions called %s in this kernel, and a name cannot tell them apart: their addresses are hidden",
			len(c.symbols), name).WithHint("%v", table.NeedAddresses())
	case table.Hidden():
		return nil, nil // the name alone finds vmlinux first
	case len(c.symbols) > 1 && len(c.types) < len(c.symbols) && !c.target.Features.ConsistentBTF:
		return nil, c.errorf("there are %d functions called %s in this kernel (%s), and BTF describes only one of them, not saying which",
			len(c.symbols), name, strings.Join(places, ", "))
	}
	var addrs []uint64
	for _, s := range c.symbols {
		addrs = append(addrs, s.Addr)
	}
	return addrs, nil
}

func (c *candidates) places() []string {
	var places []string
	for _, s := range c.symbols {
		places = append(places, fmt.Sprintf("%#x", s.Addr))
	}
	return places
}

func (t *Target) symbols(name string) []kallsyms.Symbol {
	if t.Symbols == nil {
		return nil
	}
	return t.Symbols.Lookup(name)
}

// implSuffix is behind the name under which BTF has all arguments of a function
// that BPF programs call with fewer: the verifier adds the others
// (KF_IMPLICIT_ARGS, 7.0). There is no code of that name.
const implSuffix = "_impl"

// whole is a prototype with the arguments that BTF has elsewhere.
func (c *candidates) whole(proto *btf.FuncProto) *btf.FuncProto {
	name := kallsyms.Base(c.trace.Func.Name) + implSuffix
	if c.target.Symbols == nil || len(c.target.symbols(name)) > 0 {
		return proto
	}
	for _, f := range funcsByName(c.from, name) {
		all, ok := f.Type.(*btf.FuncProto)
		if ok && len(all.Params) > len(proto.Params) && slices.EqualFunc(all.Params[:len(proto.Params)], proto.Params, sameParam) {
			return all
		}
	}
	return proto
}

func sameParam(a, b btf.FuncParam) bool { return a.Name == b.Name }
