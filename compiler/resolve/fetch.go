package resolve

import (
	"maps"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// word64 is the type of values that BTF does not describe.
var word64 = &btf.Typedef{Name: "u64", Type: intType("long long unsigned int", 8, btf.Unsigned)}

// fetchExpr binds the values that only kprobe_events lines have.
func (b *binder) fetchExpr(e spec.Expr) (operand, error) {
	switch e := e.(type) {
	case *spec.Register:
		return b.register(e)
	case *spec.StackPointer:
		return b.inContext(e, compiler.Word{Reg: b.target.Arch.SP}), nil
	case *spec.StackSlot:
		return b.inContext(e, compiler.Word{Reg: -1, Stack: 8 * int(e.N)}), nil
	case *spec.Memory:
		return b.memory(e)
	case *spec.Immediate:
		return b.immediate(e)
	case *spec.ReturnAddress:
		o := b.returnAddress(e)
		o.Base.Caller = true
		return o, nil
	case *spec.Old:
		return b.old(e)
	}
	return operand{}, b.errorf(e.Span(), "'%s' is not supported", e)
}

// inContext returns a word of the context of a kprobe.
func (b *binder) inContext(e spec.Expr, w compiler.Word) operand {
	if b.trace.Line.Return {
		return b.inRegisters(e, w, compiler.AtReturn)
	}
	return b.inRegisters(e, w, compiler.AtEntry)
}

// inRegisters returns a word of the registers or of the stack on one side of a
// call.
func (b *binder) inRegisters(e spec.Expr, w compiler.Word, side compiler.Side) operand {
	o := argument(&compiler.Param{Name: e.String(), Type: word64, Size: 8, Words: []compiler.Word{w}}, side)
	o.Base.Register, o.untyped, o.known = true, true, false
	return o
}

// returnsKnown lists functions that look up a return address. Kernels that have one
// of them (from 5.15 on) give kretprobes the return address as instruction pointer.
var returnsKnown = []string{"kretprobe_find_ret_addr", "rethook_find_ret_addr"}

// returnAddress returns the return address of the function. Where a kretprobe
// does not provide it, it is read at entry. The program at entry was attached
// after the kretprobe, so it runs before the kretprobe replaces the address
// with its own.
func (b *binder) returnAddress(e spec.Expr) operand {
	if b.returnsKnown() {
		return b.inRegisters(e, compiler.Word{Reg: b.target.Arch.IP}, compiler.AtReturn)
	}
	return b.inRegisters(e, b.target.Arch.RetAddr, compiler.AtEntry)
}

// returnsKnown reports whether a kretprobe knows the return address.
func (b *binder) returnsKnown() bool {
	return slices.ContainsFunc(returnsKnown, func(name string) bool { return len(funcsByName(b.target.Kernel, name)) > 0 })
}

func (b *binder) register(e *spec.Register) (operand, error) {
	regs := b.target.Arch.Registers
	off, ok := regs[e.Name.Name]
	if ok {
		return b.inContext(e, compiler.Word{Reg: off}), nil
	}
	err := b.errorf(e.Span(), "there is no register '%%%s' on %s", e.Name.Name, b.target.Arch.Name)
	names := slices.Sorted(maps.Keys(regs))
	if near, ok := spec.Nearest(e.Name.Name, slices.Values(names)); ok {
		return operand{}, err.WithMeant("%%%s", near)
	}
	return operand{}, err.WithHint("there are %s", strings.Join(names, ", "))
}

// old returns the argument with a name, or the value that the name meant in
// 2009.
func (b *binder) old(e *spec.Old) (operand, error) {
	if p := b.param(e.Name.Name); p != nil {
		return argument(p, compiler.AtEntry), nil
	}
	return b.bind(e.Was)
}

// immediate returns a string, or a number in the form of an address that nothing
// is read from.
func (b *binder) immediate(e *spec.Immediate) (operand, error) {
	if e.Const.Kind == spec.String {
		text := append([]byte(e.Const.Str), 0)
		char := &btf.Array{Type: intType("char", 1, btf.Signed), Nelems: uint32(len(text))}
		return operand{Value: compiler.Value{Type: char, Base: compiler.Base{Const: text}}}, nil
	}
	n := e.Const.Abs
	if e.Const.Neg {
		n = -n
	}
	return operand{untyped: true, Value: compiler.Value{
		Type: word64, Base: compiler.Base{Addr: n}, Path: []compiler.Access{{Size: 8, Addr: true}}, Load: &compiler.Scalar{Size: 8},
	}}, nil
}

// memory returns what is in memory at an offset from an address.
func (b *binder) memory(e *spec.Memory) (o operand, err error) {
	if e.Off < -farthest || e.Off > farthest {
		return o, b.errorf(e.Span(), "the offset %d is more than a gigabyte", e.Off)
	}
	if a, ok := e.X.(*spec.Address); ok {
		o, err = b.fixed(a)
	} else if o, err = b.bind(e.X); err == nil {
		err = b.pointTo(&o, e.X)
	}
	if err != nil {
		return o, err
	}
	last := &o.Path[len(o.Path)-1]
	last.Off += int(e.Off)
	if e.User {
		last.In = compiler.UserSpace
	}
	o.Type, o.untyped = word64, true
	return o, nil
}

// fixed returns the memory at an address that is known when the line is bound.
func (b *binder) fixed(a *spec.Address) (operand, error) {
	addr := a.N
	if a.Symbol.Name != "" {
		var err error
		if addr, err = b.address(a.Span(), a.Symbol.Name); err != nil {
			return operand{}, err
		}
	}
	return operand{Value: compiler.Value{Base: compiler.Base{Addr: addr + uint64(a.Off)}, Path: []compiler.Access{{}}}}, nil
}

// pointTo turns o into *o, whatever type it has.
func (b *binder) pointTo(o *operand, e spec.Expr) error {
	if n := len(o.Path); n > 0 && o.Path[n-1].Addr { // an address that was not read
		o.Path = appendPath(o.Path[:n-1], compiler.Access{Off: o.Path[n-1].Off})
		o.Load, o.Casts = nil, nil
		return nil
	}
	if err := b.finish(o, e); err != nil {
		return err
	}
	if !o.plainWord() {
		return b.errorf(e.Span(), "'%s' is %s, not an address of 64 bits", e, describe(o.Type))
	}
	o.Path = appendPath(o.Path, compiler.Access{})
	o.Load, o.Scalar, o.Casts, o.field, o.bits, o.known = nil, nil, nil, nil, 0, false
	return nil
}
