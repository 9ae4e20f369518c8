package resolve

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// perCPUOffsets is the name of the kernel's table of offsets to add to the
// address of a per-CPU variable, one 8-byte number for each CPU.
const perCPUOffsets = "__per_cpu_offset"

// typeUnknown is the name of the type of a variable that BTF does not describe.
// It is a number of 8 bytes until a cast gives it a type.
const typeUnknown = "type unknown"

// global binds a variable. The address is valid for this boot of the kernel
// only.
func (b *binder) global(e *spec.Global) (operand, error) {
	name := e.Name.Name
	symbol, err := b.symbol(e.Span(), name)
	if err != nil {
		return operand{}, err
	}
	types := b.target.Kernel
	if of := b.moduleTypes(symbol.Module); of != nil {
		types = of
	}
	if b.trace.Values { // a cast names its types, too
		b.fn.Types = types
	}
	o := operand{Value: compiler.Value{Base: compiler.Base{Addr: symbol.Addr}, Path: []compiler.Access{{}}}}
	v, perCPU, known := variable(types, name)
	if v == nil {
		o.Type, o.untyped = intType(typeUnknown, 8, btf.Unsigned), true
	} else {
		o.Type = v.Type
	}
	if perCPU || !known && b.inPerCPU(symbol) {
		o.Base.PerCPU, err = b.address(e.Span(), perCPUOffsets)
	}
	return o, err
}

// moduleTypes returns the types of a loaded module, or nil if it has none.
func (b *binder) moduleTypes(module string) *btf.Spec {
	if module == "" || b.target.Module == nil {
		return nil
	}
	types, err := b.target.Module(module)
	if err != nil {
		return nil
	}
	return types
}

// address returns the address of a symbol, which must be unique.
func (b *binder) address(at spec.Span, name string) (uint64, error) {
	s, err := b.symbol(at, name)
	return s.Addr, err
}

// withoutSymbols returns an error about an address that only a symbol table has.
func withoutSymbols(err *spec.Error) *spec.Error {
	return err.WithHint("--btf has only types: without it, the symbols of the running kernel are used").WithKind(spec.NoSymbols)
}

// symbol returns a symbol with its address. It must be unique.
func (b *binder) symbol(at spec.Span, name string) (s kallsyms.Symbol, err error) {
	table := b.target.Symbols
	if table == nil {
		return s, withoutSymbols(b.errorf(at, "the address of '%s' is not known, as there is no symbol table", name))
	}
	symbols := table.Lookup(name)
	switch {
	case len(symbols) == 0:
		return s, b.noVariable(at, name)
	case table.Hidden():
		return s, b.errorf(at, "the address of '%s' is not known: %v", name, table.NeedAddresses()).WithKind(spec.HiddenAddresses)
	case len(symbols) > 1:
		return s, b.ambiguous(at, name, symbols)
	}
	if m := symbols[0].Module; m != "" && b.modules != nil && !slices.Contains(*b.modules, m) {
		*b.modules = append(*b.modules, m)
	}
	return symbols[0], nil
}

// noVariable returns the error for a name that no symbol has.
func (b *binder) noVariable(at spec.Span, name string) *spec.Error {
	err := b.errorf(at, "there is no variable '%s' in this kernel", name)
	names, all := b.variableNames()
	if near, ok := spec.Nearest(name, names); ok {
		return err.WithMeant("@%s", near)
	}
	for range names {
		return err
	}
	if !all {
		return err
	}
	return err.WithHint("its symbol table has no variables at all: that takes CONFIG_KALLSYMS_ALL")
}

// mostPlaces is the largest number of symbols of a name that an error lists.
const mostPlaces = 4

// ambiguous returns the error for a variable of which there are several.
func (b *binder) ambiguous(at spec.Span, name string, symbols []kallsyms.Symbol) error {
	var places []string
	for _, s := range symbols[:min(len(symbols), mostPlaces)] {
		places = append(places, fmt.Sprintf("in %s at %#x", cmp.Or(s.Module, vmlinux), s.Addr))
	}
	if len(symbols) > mostPlaces {
		places = append(places, "and others")
	}
	hint := strings.Join(places, ", ")
	if b.trace.Values {
		hint += fmt.Sprintf("; an address with a cast is one of them: *(int *)%#x", symbols[0].Addr)
	}
	return b.errorf(at, "there are %d symbols '%s' in this kernel, and a name cannot tell them apart", len(symbols), name).WithHint("%s", hint)
}

// variable returns the description of a variable by the types of vmlinux or of a
// module, or nil, and whether it is per-CPU, if the types say so. Most kernels describe
// only the per-CPU ones.
func variable(types *btf.Spec, name string) (v *btf.Var, perCPU, known bool) {
	if types.TypeByName(name, &v) != nil {
		return nil, false, false
	}
	var section *btf.Datasec
	if types.TypeByName(".data..percpu", &section) != nil {
		return v, false, false // as in a part of the types
	}
	return v, slices.ContainsFunc(section.Vars, func(s btf.VarSecinfo) bool { return s.Type == v }), true
}

// symbolsOf returns the symbols that a variable needs.
func symbolsOf(e *spec.Global) []string {
	return append([]string{e.Name.Name, perCPUOffsets}, perCPUBounds...)
}

// ofLinker reports whether a symbol marks a place and is no variable. A kernel without
// CONFIG_KALLSYMS_ALL has these, too.
func ofLinker(name string) bool {
	return strings.HasPrefix(name, "__start_") || strings.HasPrefix(name, "__stop_") || name == "__init_begin"
}

// variableNames iterates over the names of the variables of the kernel, and reports
// whether these are all. The table of 6.18 has those at the beginning of the kernel's data
// as code, such as init_task.
func (b *binder) variableNames() (names iter.Seq[string], all bool) {
	table, all := b.target.Symbols, true
	if b.target.AllSymbols != nil {
		if t, err := b.target.AllSymbols(); err == nil {
			table = t
		} else { // what is known must do
			all = false
		}
	}
	begin, end := table.Lookup("_sdata"), table.Lookup("_edata")
	inData := func(s kallsyms.Symbol) bool {
		return len(begin) > 0 && len(end) > 0 && begin[0].Addr <= s.Addr && s.Addr < end[0].Addr
	}
	return func(yield func(string) bool) {
		for s := range table.All() {
			if (!s.Text() || inData(s)) && !ofLinker(s.Name) && !yield(s.Name) {
				return
			}
		}
	}, all
}
