package compiler

import (
	"maps"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// perCPUOffsets is the kernel's table of what to add to the address of a
// per-CPU variable, one 8-byte number for each CPU.
const perCPUOffsets = "__per_cpu_offset"

// global binds a variable. Its address is that of this boot of the kernel.
func (b *binder) global(e *spec.Global) (operand, error) {
	name := e.Name.Name
	addr, err := b.address(e.Span(), name)
	if err != nil {
		return operand{}, err
	}
	o := operand{Value: Value{Base: Base{Addr: addr}, Path: []Access{{}}}}
	v, perCPU := b.variable(name)
	if v == nil {
		o.Type, o.untyped = intType("unsigned long", 8, btf.Unsigned), true
		return o, nil
	}
	o.Type = v.Type
	if perCPU {
		o.Base.PerCPU, err = b.address(e.Span(), perCPUOffsets)
	}
	return o, err
}

// address finds the one address of a symbol.
func (b *binder) address(at spec.Span, name string) (uint64, error) {
	table := b.target.Symbols
	if table == nil {
		return 0, b.errorf(at, "the address of '%s' is not known, as there is no symbol table", name)
	}
	symbols := table.Lookup(name)
	switch {
	case len(symbols) == 0:
		err := b.errorf(at, "there is no variable '%s' in this kernel", name)
		if near, ok := spec.Nearest(name, b.variableNames()); ok {
			err = err.WithHint("did you mean '@%s'?", near)
		}
		return 0, err
	case table.Hidden():
		return 0, b.errorf(at, "the address of '%s' is not known: %v", name, table.NeedAddresses())
	case len(symbols) > 1:
		return 0, b.errorf(at, "there are %d symbols '%s' in this kernel, and a name cannot tell them apart", len(symbols), name)
	}
	return symbols[0].Addr, nil
}

// variable is the type that BTF has of a variable, if any. Most kernels
// describe the per-CPU ones alone.
func (b *binder) variable(name string) (v *btf.Var, perCPU bool) {
	if b.target.Kernel.TypeByName(name, &v) != nil {
		return nil, false
	}
	var section *btf.Datasec
	if b.target.Kernel.TypeByName(".data..percpu", &section) != nil {
		return v, false
	}
	for _, s := range section.Vars {
		if s.Type == v {
			return v, true
		}
	}
	return v, false
}

// variableNames iterates over the variables that are known by name.
func (b *binder) variableNames() func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for s := range b.target.Symbols.All() {
			if !s.Text() && !yield(s.Name) {
				return
			}
		}
	}
}

// Symbols says which symbols the specs need, for reading a symbol table.
func Symbols(traces []*spec.Trace) kallsyms.Wanted {
	names := map[string]bool{}
	var globs []string
	for _, t := range traces {
		switch {
		case t.Probe != nil && asksNames(t):
			return kallsyms.Wanted{}
		case t.Tracepoint:
			names[tracepointSymbol+t.Func.Name] = true
		case spec.IsGlob(t.Func.Name):
			globs = append(globs, t.Func.Name)
		default:
			base := kallsyms.Base(t.Func.Name)
			names[base], names[base+implSuffix] = true, true
		}
		for _, item := range t.AllItems() {
			spec.Walk(item.Value, func(e spec.Expr) {
				switch e := e.(type) {
				case *spec.Global:
					names[e.Name.Name], names[perCPUOffsets] = true, true
				case *spec.Address:
					names[e.Symbol.Name] = true
				}
			})
		}
	}
	prefixes := slices.Collect(maps.Keys(names))
	for _, g := range globs {
		prefixes = append(prefixes, spec.GlobPrefix(g))
	}
	return kallsyms.Wanted{Prefixes: prefixes, Keep: func(name string) bool {
		return names[kallsyms.Base(name)] || names[name] || matchesAny(globs, name) ||
			matchesAny(globs, strings.TrimSuffix(name, implSuffix))
	}}
}
