package compiler

import (
	"slices"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// eventFunction is the function of a kprobe_events line. A line that names
// nothing of BTF takes one that BTF does not describe.
func eventFunction(trace *spec.Trace, target *Target) (*Function, error) {
	fn, err := FindFunction(trace, target)
	if err == nil || needsTypes(trace) {
		return fn, err
	}
	symbols := slices.DeleteFunc(slices.Clone(target.symbols(trace.Func.Name)), func(s kallsyms.Symbol) bool {
		module := trace.Module.Name
		return !s.Entry() || module != "" && s.Module != module && !(module == vmlinux && s.Module == "")
	})
	if len(symbols) == 0 || target.Symbols.Hidden() && len(symbols) > 1 {
		return nil, err
	}
	return untyped(trace.Func.Name, symbols), nil
}

// needsTypes says whether a line can be understood with BTF alone: it is one of
// a kind that the kernel has only with it, or names arguments or members.
func needsTypes(trace *spec.Trace) bool {
	if k := trace.Probe.Kind; k != spec.Kprobe && k != spec.Kretprobe {
		return true
	}
	needs := false
	for _, item := range trace.Items {
		spec.Walk(item.Value, func(x spec.Expr) {
			switch x.(type) {
			case *spec.Arg, *spec.Member, *spec.AllArgs:
				needs = true
			}
		})
	}
	return needs
}

// untyped is the function that these symbols are, of which nothing but its
// place is known.
func untyped(name string, symbols []kallsyms.Symbol) *Function {
	fn := &Function{
		Name: name, Module: symbols[0].Module, Symbol: name, Untyped: true,
		Type: &btf.Func{Name: name, Type: &btf.FuncProto{Return: &btf.Void{}}},
	}
	if len(symbols) > 1 {
		for _, s := range symbols {
			fn.Addrs = append(fn.Addrs, s.Addr)
		}
	}
	return fn
}

// untypedArg is argument n, from 1 on, of a function that BTF does not
// describe, if all of them are numbers.
func (b *binder) untypedArg(e spec.Expr, n int) operand {
	regs := b.target.Arch.ArgRegs
	w := Word{Reg: -1, Stack: b.target.Arch.StackArg + 8*(n-1-len(regs))}
	if n <= len(regs) {
		w = Word{Reg: regs[n-1]}
	}
	return b.inRegisters(e, w, AtEntry)
}

// untypedResult is what such a function returns, if it is a number.
func (b *binder) untypedResult() operand {
	return b.inRegisters(&spec.Builtin{Name: spec.Ident{Name: "retval"}}, Word{Reg: b.target.Arch.RetRegs[0]}, AtReturn)
}

// size is how many bytes a function has; 0 if it is not known.
func (fn *Function) size(target *Target) uint64 {
	if target.Symbols == nil || target.Symbols.Hidden() {
		return 0
	}
	for _, s := range target.symbols(fn.Symbol) {
		if s.Entry() && s.Module == fn.Module && (len(fn.Addrs) == 0 || s.Addr == fn.Addrs[0]) {
			return target.Symbols.End(s) - s.Addr
		}
	}
	return 0
}
