package compiler

import (
	"fmt"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// Function is a kernel function, or a tracepoint, that can be traced.
type Function struct {
	Name       string // as it is shown
	Module     string // "" is vmlinux
	Tracepoint bool
	Type       *btf.Func
	Signature
	// Untyped: BTF does not describe it, so that nothing is known of its
	// arguments and its result.
	Untyped bool
	// Copies is the number of functions of this name in the BTF.
	Copies int
	// Symbol is the name of the code, which may have a suffix that the
	// compiler gave a changed copy.
	Symbol string
	// Addrs is where the code is, if the symbol does not say it alone: a
	// name may stand for several functions.
	Addrs []uint64

	types *btf.Spec // where Type is from
}

// specs are the types that a cast can name.
func (fn *Function) specs(target *Target) []*btf.Spec {
	if fn.types != nil && fn.types != target.Kernel {
		return []*btf.Spec{fn.types, target.Kernel}
	}
	return []*btf.Spec{target.Kernel}
}

// resultLost says whether the result is where nobody knows at return.
func (fn *Function) resultLost() bool {
	return fn.Result != nil && fn.Result.InMemory && len(fn.Result.Words) == 0
}

// notes are what may surprise the user of the function.
func (fn *Function) notes() []string {
	var notes []string
	if fn.Symbol != fn.Type.Name {
		notes = append(notes, fmt.Sprintf(
			"%s is a copy that the compiler changed: it may have fewer arguments than %s, so check what is shown of them",
			fn.Symbol, fn.Type.Name))
	}
	if n := len(fn.Addrs); n > 1 {
		notes = append(notes, fmt.Sprintf("%s is the name of %d functions with the same arguments: all are traced", fn.Name, n))
	}
	return notes
}

// FindFunction binds the function name of a spec, which is no glob. The error
// is a [*spec.Error].
func FindFunction(trace *spec.Trace, target *Target) (*Function, error) {
	if trace.Tracepoint {
		return findTracepoint(trace, target)
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
		return nil, spec.Errorf(trace.Text, trace.Func.At, "%s has no prototype in BTF", name)
	}
	proto = c.whole(proto)
	sig, err := place(proto, target.Arch)
	if err != nil {
		return nil, spec.Errorf(trace.Text, trace.Func.At, "%s has a signature that BTF does not describe: %v", name, err)
	}
	return &Function{
		Name: name, Module: c.module, Type: typ, Signature: *sig,
		Copies: len(c.types), Symbol: name, Addrs: addrs, types: c.from,
	}, nil
}
