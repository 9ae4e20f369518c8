package resolve

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// specsOf returns the BTF that a cast can name types of.
func specsOf(fn *compiler.Function, target *compiler.Target) []*btf.Spec {
	if fn.Types != nil && fn.Types != target.Kernel {
		return []*btf.Spec{fn.Types, target.Kernel}
	}
	if target.Kernel == nil {
		return nil // see Recorded
	}
	return []*btf.Spec{target.Kernel}
}

// resultLost reports whether the address of the result is unknown at return.
func resultLost(fn *compiler.Function) bool {
	return fn.Result != nil && fn.Result.InMemory && len(fn.Result.Words) == 0
}

// FindFunction binds the function name of a spec, which must not be a glob. The
// error is a [*spec.Error].
func FindFunction(trace *spec.Trace, target *compiler.Target) (*compiler.Function, error) {
	switch {
	case trace.Values:
		return atOnce(trace), nil
	case trace.Tracepoint:
		return findTracepoint(trace, target)
	case trace.Iterator:
		return findIterator(trace, target)
	}
	trace, err := named(trace, target)
	if err != nil {
		return nil, err
	}
	c, err := findCandidates(trace, target)
	if err != nil {
		return nil, err
	}
	typ, err := c.choose()
	if err != nil {
		return nil, err
	}
	addrs, err := c.addresses()
	if err != nil {
		return nil, err
	}
	name := trace.Func.Name
	proto, ok := typ.Type.(*btf.FuncProto)
	if !ok {
		return nil, trace.Errorf(trace.Func.At, "%s has no prototype in BTF", spec.Subject(name))
	}
	proto = c.whole(proto)
	sig, err := Place(proto, target.Arch)
	if err != nil {
		return nil, trace.Errorf(trace.Func.At, "%s has a signature that BTF does not describe: %v", spec.Subject(name), err)
	}
	return &compiler.Function{
		Name: name, Module: c.module, Type: typ, Signature: *sig,
		Copies: len(c.types), Symbol: name, Addrs: addrs, Addr: c.address(), Types: c.from,
	}, nil
}

// candidates are the types and symbols that a function's name may refer to.
type candidates struct {
	trace   *spec.Trace
	target  *compiler.Target
	module  string // "" for vmlinux
	from    *btf.Spec
	types   []*btf.Func       // those with the name without suffixes
	symbols []kallsyms.Symbol // those of the code in that module
}

func (c *candidates) errorf(format string, args ...any) *spec.Error {
	return c.trace.Errorf(c.trace.Func.At, format, args...)
}

func (c *candidates) subject() spec.Subject { return spec.Subject(c.trace.Func.Name) }

// vmlinux is the name of the kernel itself in a spec where a module may stand.
const vmlinux = "vmlinux"

// findCandidates looks in the module of the spec, if it names one. Otherwise it
// looks in vmlinux, and then in the module that the symbol table names.
func findCandidates(trace *spec.Trace, target *compiler.Target) (*candidates, error) {
	c := &candidates{trace: trace, target: target}
	base := kallsyms.Base(trace.Func.Name)
	symbols := symbolsNamed(target, trace.Func.Name)
	module := trace.Module.Name
	if module == "" || module == vmlinux {
		c.from, c.types = target.Kernel, funcsNamed(target, target.Kernel, base)
	}
	if len(c.types) == 0 && module != vmlinux {
		if err := c.fromModules(module, base, symbols); err != nil {
			return nil, err
		}
	}
	if len(c.types) == 0 {
		if err := c.notInIt(symbols); err != nil {
			return nil, err
		}
		return nil, unknownFunction(target, trace, symbols)
	}
	for _, s := range symbols {
		if s.Text() && s.Module == c.module {
			c.symbols = append(c.symbols, s)
		}
	}
	return c, nil
}

// fromModules takes the types from the module that the spec names, or else from the
// only one that has code of that name. It returns an error if several have.
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
		return c.errorf("%s is in the modules %s", c.subject(), strings.Join(modules, ", ")).
			WithHint("say which one: %s:%s", modules[0], c.trace.Func.Name)
	}
	for _, m := range modules {
		if c.target.Module == nil {
			continue
		}
		types, err := c.target.Module(m)
		if errors.Is(err, compiler.ErrNoModuleBTF) {
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

// indexedWrong reports whether a name begins with its only "___". btf.Spec
// takes all of such a name for the flavour of a type without a name, and does
// not find it (cilium/ebpf 0.22).
func indexedWrong(name string) bool { return strings.LastIndex(name, "___") == 0 }

// funcsNamed returns the functions with a name of vmlinux or a module.
func funcsNamed(target *compiler.Target, types *btf.Spec, name string) []*btf.Func {
	if indexedWrong(name) && types == target.Kernel && target.FuncsNamed != nil {
		if ids, known := target.FuncsNamed(name); known {
			if funcs, err := typesByID[*btf.Func](types, ids); err == nil {
				return funcs
			}
		}
	}
	return funcsByName(types, name)
}

// typesByID returns those of the types with these ids that are a T.
func typesByID[T btf.Type](types *btf.Spec, ids []btf.TypeID) (all []T, err error) {
	for _, id := range ids {
		t, err := types.TypeByID(id)
		if err != nil {
			return nil, err
		}
		if t, ok := t.(T); ok {
			all = append(all, t)
		}
	}
	return all, nil
}

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

// mostPrototypes is the largest number of prototypes of one name that are
// compared. No kernel has more than a few.
const mostPrototypes = 100

// choose returns the function whose prototype is the only one, or else the only one
// that has the arguments that the spec names.
func (c *candidates) choose() (*btf.Func, error) {
	var fitting []*btf.Func
	var all []string
	for _, t := range c.types {
		p := prototype(t)
		if slices.Contains(all, p) {
			continue
		}
		if all = append(all, p); len(all) > mostPrototypes {
			return nil, c.errorf("%s is in BTF with more than %d prototypes, and a name cannot tell them apart", c.subject(), mostPrototypes)
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
			c.subject(), len(c.symbols), strings.Join(all, ") and ("))
	}
	return nil, c.errorf("%s is in BTF with different prototypes, and a name cannot tell them apart: (%s)",
		c.subject(), strings.Join(all, ") and (")).WithHint("name arguments that only one of them has")
}

// hasArguments reports whether a function has all the arguments that a spec
// names.
func hasArguments(t *btf.Func, trace *spec.Trace) bool {
	proto, ok := t.Type.(*btf.FuncProto)
	if !ok {
		return false
	}
	has := true
	for _, item := range trace.AllItems() {
		item.Walk(func(e spec.Expr) {
			if arg, ok := e.(*spec.Arg); ok {
				has = has && slices.ContainsFunc(proto.Params, func(p btf.FuncParam) bool { return p.Name == arg.Name.Name })
			}
		})
	}
	return has
}

// prototype returns a list of a function's parameters, each with its name and
// the kind of its type.
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

// addresses returns the addresses of the code if the name alone is ambiguous.
// Given a name that several functions have, the kernel would attach to the first
// without an error.
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
		if base := kallsyms.Base(name); base != name && len(symbolsNamed(c.target, base)) > 0 {
			return nil, c.errorf("there is no function %s in this kernel", name).WithMeant("%s", base)
		}
		return nil, c.errorf("%s has a type but no code in this kernel: it was inlined everywhere, or is start-up code that was freed", c.subject())
	case c.unique():
		return nil, nil
	}
	places := c.places()
	switch {
	case table.Hidden() && len(c.symbols) > 1:
		return nil, c.errorf("there are %d functions called %s in this kernel, and a name cannot tell them apart: their addresses are hidden",
			len(c.symbols), name).WithHint("%v", table.NeedAddresses())
	case table.Hidden():
		return nil, nil // the name alone is looked up in vmlinux first
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

// unique reports whether only one symbol has the name.
func (c *candidates) unique() bool {
	return len(c.symbols) == 1 && len(symbolsNamed(c.target, c.trace.Func.Name)) == 1
}

// address returns the address of the code if the name is unique, or 0 if it is
// not, or if addresses are hidden.
func (c *candidates) address() uint64 {
	if !c.unique() {
		return 0
	}
	return c.symbols[0].Addr
}

func (c *candidates) places() []string {
	var places []string
	for _, s := range c.symbols {
		places = append(places, fmt.Sprintf("%#x", s.Addr))
	}
	return places
}

func symbolsNamed(t *compiler.Target, name string) []kallsyms.Symbol {
	if t.Symbols == nil {
		return nil
	}
	return t.Symbols.Lookup(name)
}

// implSuffix is the suffix of the name under which BTF has all arguments of a
// function that BPF programs call with fewer: the verifier adds the others
// (KF_IMPLICIT_ARGS, 7.0). There is no code with that name.
const implSuffix = "_impl"

// whole returns the prototype with all arguments, which BTF may have under
// another name.
func (c *candidates) whole(proto *btf.FuncProto) *btf.FuncProto {
	name := kallsyms.Base(c.trace.Func.Name) + implSuffix
	if c.target.Symbols == nil || len(symbolsNamed(c.target, name)) > 0 {
		return proto
	}
	for _, f := range funcsNamed(c.target, c.from, name) {
		all, ok := f.Type.(*btf.FuncProto)
		if ok && len(all.Params) > len(proto.Params) && slices.EqualFunc(all.Params[:len(proto.Params)], proto.Params, sameParam) {
			return all
		}
	}
	return proto
}

func sameParam(a, b btf.FuncParam) bool { return a.Name == b.Name }
