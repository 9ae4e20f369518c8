package resolve

import (
	"slices"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// eventFunction returns the function of a kprobe_events line. A line that names
// nothing of BTF may use a function that BTF does not describe.
func eventFunction(trace *spec.Trace, target *compiler.Target) (*compiler.Function, error) {
	fn, err := FindFunction(trace, target)
	if err == nil || needsTypes(trace) {
		return fn, err
	}
	symbols := slices.DeleteFunc(slices.Clone(symbolsNamed(target, trace.Func.Name)), func(s kallsyms.Symbol) bool {
		module := trace.Module.Name
		return !s.Entry() || module != "" && s.Module != module && !(module == vmlinux && s.Module == "")
	})
	if len(symbols) == 0 || target.Symbols.Hidden() && len(symbols) > 1 {
		return nil, err
	}
	return untyped(trace.Func.Name, symbols), nil
}

// needsTypes reports whether a line needs BTF: its kind exists only in kernels
// with BTF, or it names arguments or members.
func needsTypes(trace *spec.Trace) bool {
	if k := trace.Line.Kind; k != spec.Kprobe && k != spec.Kretprobe {
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

// untyped returns the function with these symbols. Nothing but its place is
// known.
func untyped(name string, symbols []kallsyms.Symbol) *compiler.Function {
	fn := &compiler.Function{
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

// untypedArg returns argument n, counted from 1, of a function that BTF does
// not describe. It assumes that all arguments are numbers.
func (b *binder) untypedArg(e spec.Expr, n int) operand {
	regs := b.target.Arch.ArgRegs
	w := compiler.Word{Reg: -1, Stack: b.target.Arch.StackArg + 8*(n-1-len(regs))}
	if n <= len(regs) {
		w = compiler.Word{Reg: regs[n-1]}
	}
	return b.inRegisters(e, w, compiler.AtEntry)
}

// untypedResult returns the result of a function that BTF does not describe. It
// assumes that the result is a number.
func (b *binder) untypedResult() operand {
	return b.inRegisters(&spec.Builtin{Name: spec.Ident{Name: "retval"}}, compiler.Word{Reg: b.target.Arch.RetRegs[0]}, compiler.AtReturn)
}

// sizeOf returns the size of a function in bytes, or 0 if it is not known.
func sizeOf(fn *compiler.Function, target *compiler.Target) uint64 {
	if target.Symbols == nil || target.Symbols.Hidden() {
		return 0
	}
	for _, s := range symbolsNamed(target, fn.Symbol) {
		if s.Entry() && s.Module == fn.Module && (len(fn.Addrs) == 0 || s.Addr == fn.Addrs[0]) {
			return target.Symbols.End(s) - s.Addr
		}
	}
	return 0
}
