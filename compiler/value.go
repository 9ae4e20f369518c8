package compiler

import (
	"iter"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// Value is a resolved expression: what it is and how to reach it.
type Value struct {
	Name string   // as in the spec: skb->len
	Type btf.Type // as declared
	From *Param   // the parameter or result it begins at
	// Path is the accesses from From's word on: each adds an offset to a
	// pointer and reads there, the last one the value itself. Empty: the
	// value is in From's words.
	Path []Access
	// Scalar is how it reads as a number; nil for records and arrays.
	Scalar *Scalar
	// Pointee is what to follow a pointer to; nil: the pointer alone.
	Pointee btf.Type
	// String: the pointee is a string.
	String bool
}

// Access is one read of memory at an offset from a pointer.
type Access struct {
	Off    int
	Size   int
	Direct bool // the verifier knows the type, so a plain load will do
}

// direct says whether all of the path is plain loads for a trampoline program.
func (v *Value) direct() bool {
	if len(v.Path) == 0 || !v.From.Typed {
		return false
	}
	for _, a := range v.Path {
		if !a.Direct {
			return false
		}
	}
	return true
}

// resolveValue binds an expression to the function's types.
func resolveValue(trace *spec.Trace, fn *Function, e spec.Expr) (*Value, error) {
	v, err := bind(trace, fn, e)
	if err != nil {
		return nil, err
	}
	v.Name = e.String()
	if v.Scalar == nil {
		v.Scalar = scalarOf(v.Type)
	}
	v.follow()
	return v, nil
}

func bind(trace *spec.Trace, fn *Function, e spec.Expr) (*Value, error) {
	switch e := e.(type) {
	case *spec.Arg:
		return bindArg(trace, fn, e)
	case *spec.Return:
		if fn.Result == nil {
			return nil, spec.Errorf(trace.Text, e.Span(), "%s returns void", fn.Name)
		}
		if neverReturns[fn.Name] {
			return nil, spec.Errorf(trace.Text, e.Span(), "%s never returns", fn.Name)
		}
		v := &Value{Type: fn.Result.Type, From: fn.Result}
		if fn.Result.InMemory {
			v.Path = []Access{{Size: fn.Result.Size}}
		}
		return v, nil
	case *spec.Member:
		return bindMember(trace, fn, e)
	}
	return nil, spec.Errorf(trace.Text, e.Span(), "%s is not a value", e)
}

func bindArg(trace *spec.Trace, fn *Function, e *spec.Arg) (*Value, error) {
	for i := range fn.Params {
		if p := &fn.Params[i]; p.Name == e.Name.Name {
			return &Value{Type: p.Type, From: p}, nil
		}
	}
	err := spec.Errorf(trace.Text, e.Span(), "%s has no argument '%s'", fn.Name, e.Name.Name)
	if len(fn.Params) == 0 {
		return nil, err.WithHint("it takes no arguments")
	}
	if near, ok := spec.Nearest(e.Name.Name, paramNames(fn)); ok {
		return nil, err.WithHint("did you mean '%s'?", near)
	}
	return nil, err.WithHint("it has %s", join(paramNames(fn)))
}

// follow decides what is captured behind a pointer.
func (v *Value) follow() {
	ptr, ok := btf.As[*btf.Pointer](v.Type)
	if !ok {
		return
	}
	if isChar(ptr.Target) {
		v.Pointee, v.String = ptr.Target, true
		return
	}
	if size, err := btf.Sizeof(ptr.Target); err == nil && size > 0 {
		v.Pointee = ptr.Target
	}
}

func paramNames(fn *Function) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, p := range fn.Params {
			if !yield(p.Name) {
				return
			}
		}
	}
}
