package compiler

import (
	"iter"
	"slices"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// binder binds the expressions of a spec to a function's types.
type binder struct {
	trace  *spec.Trace
	target *Target
	fn     *Function
}

// operand is a value that is being bound.
type operand struct {
	Value
	// bits is the offset in a record that is passed by value.
	bits int
	// field is the bitfield that the operand is; nil: it is none.
	field *Scalar
	// known: its type is the one that the verifier knows, too.
	known bool
	// untyped: a variable that BTF has no type of; a cast says what it is.
	untyped bool
}

func (b *binder) errorf(at spec.Span, format string, args ...any) *spec.Error {
	return spec.Errorf(b.trace.Text, at, format, args...)
}

// value binds an expression in a format.
func (b *binder) value(e spec.Expr, format spec.Ident) (*Value, error) {
	o, err := b.bind(e)
	if err != nil {
		return nil, err
	}
	o.Name = e.String()
	if err := b.finish(&o, e); err != nil {
		return nil, err
	}
	if a, ok := btf.As[*btf.Array](o.Type); ok && a.Nelems == 0 {
		if err := b.flexible(&o, a, e); err != nil {
			return nil, err
		}
	}
	if format.Name != "" {
		return &o.Value, b.format(&o.Value, format)
	}
	o.follow()
	return &o.Value, nil
}

// flexible makes a pointer of an array whose length BTF does not say: of one of
// characters, which ends with a NUL. Others are refused.
func (b *binder) flexible(o *operand, a *btf.Array, e spec.Expr) error {
	if !isChar(a.Type) || len(o.Path) == 0 {
		return b.errorf(e.Span(), "'%s' is an array of unknown length", e).WithHint("name an element: %s[0]", e)
	}
	last := &o.Path[len(o.Path)-1] // finish has made the path our own
	last.Addr, last.Size, last.Direct = true, 8, false
	o.Type = &btf.Pointer{Target: a.Type}
	o.Load = &Scalar{Size: 8}
	o.Scalar = o.Load
	return nil
}

func (b *binder) bind(e spec.Expr) (operand, error) {
	switch e := e.(type) {
	case *spec.Arg:
		return b.arg(e)
	case *spec.Return:
		return b.result(e.Span())
	case *spec.Builtin:
		return b.builtin(e)
	case *spec.Global:
		return b.global(e)
	case *spec.Member:
		return b.member(e)
	case *spec.Index:
		return b.index(e)
	case *spec.Deref:
		return b.deref(e)
	case *spec.Cast:
		return b.cast(e)
	}
	if b.trace.Probe != nil {
		return b.fetchExpr(e)
	}
	return operand{}, b.errorf(e.Span(), "%s is not a value", e)
}

func (b *binder) arg(e *spec.Arg) (operand, error) {
	for i := range b.fn.Params {
		if p := &b.fn.Params[i]; p.Name == e.Name.Name {
			return argument(p, AtEntry), nil
		}
	}
	err := b.errorf(e.Span(), "%s has no argument '%s'", b.fn.Name, e.Name.Name)
	if len(b.fn.Params) == 0 {
		return operand{}, err.WithHint("it takes no arguments")
	}
	if near, ok := spec.Nearest(e.Name.Name, paramNames(b.fn)); ok {
		return operand{}, err.WithHint("did you mean '%s'?", near)
	}
	if b.fn.unnamed() {
		return operand{}, err.WithHint("the BTF of this kernel has no names for them: it has %s", join(paramNames(b.fn)))
	}
	return operand{}, err.WithHint("it has %s", join(paramNames(b.fn)))
}

func argument(p *Param, side Side) operand {
	return operand{Value: Value{Type: p.Type, Side: side, Base: Base{Param: p}}, known: true}
}

func (b *binder) result(at spec.Span) (operand, error) {
	fn := b.fn
	switch {
	case fn.Untyped:
		return b.untypedResult(), nil
	case fn.Tracepoint:
		return operand{}, b.errorf(at, "%s is a tracepoint, which returns nothing", fn.Name)
	case fn.Result == nil:
		return operand{}, b.errorf(at, "%s returns void", fn.Name)
	case neverReturns[fn.Name]:
		return operand{}, b.errorf(at, "%s never returns", fn.Name)
	case fn.resultLost():
		return operand{}, b.errorf(at, "%s returns %s in memory, and %s keeps its address only until the function begins",
			fn.Name, describe(fn.Result.Type), b.target.Arch.Name).WithHint("name arguments instead")
	}
	o := argument(fn.Result, AtReturn)
	if fn.Result.InMemory {
		o.Path = []Access{{}}
	}
	return o, nil
}

// finish turns an operand into a value: it sizes the last access.
func (b *binder) finish(o *operand, e spec.Expr) error {
	size, err := btf.Sizeof(o.Type)
	if err != nil {
		return b.errorf(e.Span(), "'%s' has no size", e)
	}
	if o.Load == nil {
		o.Load = o.field
	}
	if o.Load == nil {
		o.Load = scalarOf(o.Type)
	}
	o.Scalar = o.Load
	if n := len(o.Casts); n > 0 {
		o.Scalar = &o.Casts[n-1]
	}
	switch {
	case len(o.Path) > 0 && o.Path[len(o.Path)-1].Off > farthest:
		return b.errorf(e.Span(), "'%s' is more than a gigabyte away from what it is a part of", e)
	case len(o.Path) > 0:
		o.sizeLast(size)
	case o.Base.Param != nil && o.part():
		return b.partOfWords(o, e)
	}
	return nil
}

// sizeLast completes the access that reads the value.
func (o *operand) sizeLast(size int) {
	o.Path = slices.Clone(o.Path) // other values may share it
	last := &o.Path[len(o.Path)-1]
	if last.Size == 0 {
		last.Size = size
		if o.Load != nil && len(o.Casts) > 0 {
			last.Size = o.Load.Size
		}
	}
	if o.field != nil {
		last.Size = (o.field.Shift + o.field.Bits + 7) / 8
	}
	last.Direct = last.Direct && o.Load != nil && o.field == nil && last.Off >= 0 && last.Off+last.Size <= 1<<15
}

// part says whether an operand in words is a part of a record.
func (o *operand) part() bool {
	return o.Type != o.Base.Param.Type && len(o.Casts) == 0 && isRecord(o.Base.Param.Type)
}

// partOfWords finds the word that a member of a record passed by value is in.
func (b *binder) partOfWords(o *operand, e spec.Expr) error {
	o.Base.Word = o.bits / 64
	shift := o.bits % 64
	if o.Base.Word >= len(o.Base.Param.Words) {
		return b.errorf(e.Span(), "'%s' lies behind an argument that is passed by value", e)
	}
	if o.Load == nil {
		if shift != 0 {
			return b.errorf(e.Span(), "'%s' lies across the words of an argument that is passed by value", e).
				WithHint("record the whole argument")
		}
		return nil
	}
	load := *o.Load
	load.Bits = load.width()
	load.Shift = shift
	if shift+load.Bits > 64 {
		return b.errorf(e.Span(), "'%s' lies across two words of an argument that is passed by value", e).
			WithHint("record the whole argument")
	}
	if len(o.Casts) == 0 {
		o.Scalar = &load
	}
	o.Load = &load
	return nil
}

// follow decides what is captured behind a pointer.
func (v *Value) follow() {
	ptr, ok := btf.As[*btf.Pointer](v.Type)
	if !ok {
		return
	}
	if isChar(ptr.Target) {
		v.Pointee, v.Text = ptr.Target, KernelText
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
