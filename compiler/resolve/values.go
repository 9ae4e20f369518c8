package resolve

import (
	"fmt"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// atOnce returns what stands for a function where values are read without a call.
func atOnce(trace *spec.Trace) *compiler.Function {
	name := trace.String()
	return &compiler.Function{
		Name: name, Symbol: name, Copies: 1,
		Type: &btf.Func{Name: name, Type: &btf.FuncProto{Return: &btf.Void{}}},
	}
}

// numberAt binds a constant that a cast converts. It is as large as a pointer.
func numberAt(n uint64) operand {
	v := numberOf(word)
	v.Base.Number = &n
	return operand{Value: *v}
}

// castNumber binds the constant that a cast converts, or returns false if the cast
// converts a value. In the specs of calls casts only convert values.
func (b *binder) castNumber(e *spec.Cast) (operand, bool, error) {
	if !b.trace.Values {
		return operand{}, false, nil
	}
	n, isNumber := e.X.(*spec.Number)
	c, err := b.folded(e.X)
	if err != nil || c == nil {
		return operand{}, false, err
	}
	if isNumber && (e.Type.Stars == 0 || e.Type.Count > 0) {
		return operand{}, false, b.errorf(e.Span(), "'%s' is a constant", e).WithHint("memory is at a pointer: %s", memoryAt(e.Type, n))
	}
	return numberAt(*c.Base.Number), true, nil
}

// memoryAt returns the expression for the value at an address.
func memoryAt(t spec.TypeName, n *spec.Number) string {
	count := t.Count
	t.Stars, t.Count = t.Stars+1, 0
	if count > 0 {
		return fmt.Sprintf("((%s)%s)[0..%d]", t, n, count-1)
	}
	return fmt.Sprintf("*(%s)%s", t, n)
}

// noArgument returns the error for a name that could only be that of an argument,
// where there is no call.
func (b *binder) noArgument(e *spec.Arg) *spec.Error {
	name := e.Name.Name
	err := b.errorf(e.Span(), "'%s' is not a value: there is no call that it could be an argument of", name)
	if b.target.Symbols != nil && len(b.target.Symbols.Lookup(name)) > 0 {
		return err.WithHint("did you mean the variable '@%s'?", name)
	}
	if strings.ToUpper(name) == name {
		return err.WithHint("macros of C are not in BTF: write the number; a variable is written @%s", name)
	}
	return err.WithHint("a variable is written @%s, and memory is at an address with a cast: *(struct file *)0xffff888012345600", name)
}

// noType returns the error for a variable whose type is not known.
func (b *binder) noType(e spec.Expr) *spec.Error {
	return b.errorf(e.Span(), "BTF has no type of '%s'", e).
		WithHint("a cast gives it one: (int)%[1]s, (u64[3])%[1]s, (struct NAME)%[1]s", e)
}

// elements binds a part of an array, which is an array itself.
func (b *binder) elements(e *spec.Range) (operand, error) {
	if _, err := b.index(&spec.Index{X: e.X, N: e.Last, At: e.At}); err != nil {
		return operand{}, err
	}
	o, err := b.index(&spec.Index{X: e.X, N: e.First, At: e.At})
	if err != nil {
		return o, err
	}
	count := e.Last - e.First + 1
	size, err := btf.Sizeof(o.Type)
	switch {
	case err != nil || size == 0:
		return o, b.errorf(e.At, "'%s' has elements of unknown size", e.X)
	case len(o.Path) == 0:
		return o, b.errorf(e.At, "'%s' is passed by value, and a part of it cannot be shown alone", e.X).WithHint("show the whole array")
	case count > farthest/uint64(size):
		return o, b.errorf(e.At, "'%s' is more than a gigabyte", e)
	}
	o.Type = &btf.Array{Type: o.Type, Index: intType("unsigned int", 4, btf.Unsigned), Nelems: uint32(count)}
	o.known = false
	return o, nil
}

// perCPUBounds has the symbols at the bounds of the per-CPU variables of vmlinux.
var perCPUBounds = []string{"__per_cpu_start", "__per_cpu_end"}

// inPerCPU reports whether a symbol is a per-CPU variable, for those that BTF does not
// describe: all on kernels before 5.11, and most of modules.
func (b *binder) inPerCPU(s kallsyms.Symbol) bool {
	if s.Module != "" {
		return s.Absolute() // elf_type in kernel/module/kallsyms.c
	}
	var at [2]uint64
	for i, name := range perCPUBounds {
		symbols := b.target.Symbols.Lookup(name)
		if len(symbols) != 1 {
			return false
		}
		at[i] = symbols[0].Addr
	}
	return at[0] <= s.Addr && s.Addr < at[1]
}
