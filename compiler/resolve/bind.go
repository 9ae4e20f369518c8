package resolve

import (
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// binder binds the expressions of a spec to a function's types.
type binder struct {
	trace   *spec.Trace
	target  *compiler.Target
	fn      *compiler.Function
	values  map[string]*compiler.Value // by expression and format
	alias   string                     // text of an expression that stands for object, or "" for none
	object  *compiler.Param
	side    compiler.Side // of object
	end     bool          // whether the function is the end of a span, so that $duration is that of the span
	modules *[]string     // modules of variables are added to it, or nil
	// onEntry is set for values that are shown of an object at functions that get it.
	onEntry bool
}

// operand is a value that is being bound.
type operand struct {
	compiler.Value
	// bits is the offset in bits within a structure that is passed by value.
	bits int
	// field is the bitfield that the operand is, or nil.
	field *compiler.Scalar
	// known is set if the verifier knows the type, too.
	known bool
	// untyped is set for a variable without a type in BTF; a cast gives it one.
	untyped bool
}

// errorf returns an error at a place of the spec. It is not inlined, because many places
// call it, and seldom.
//
//go:noinline
func (b *binder) errorf(at spec.Span, format string, args ...any) *spec.Error {
	return b.trace.Errorf(at, format, args...)
}

// subject returns the function for an error about it.
func (b *binder) subject() spec.Subject { return spec.Subject(b.fn.Name) }

// value binds an expression with a format.
func (b *binder) value(e spec.Expr, format spec.Ident) (*compiler.Value, error) {
	if e, ok := e.(*spec.Builtin); ok && e.Name.Name == containerName && !b.fn.Iterator {
		return b.container(e, format)
	}
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
	if o.untyped && b.trace.Values && !b.trace.Watch {
		return nil, b.noType(e)
	}
	if format.Name != "" {
		return &o.Value, b.format(&o.Value, format)
	}
	if o.untyped && b.trace.Line == nil {
		o.Format = "x"
	}
	followPointer(&o.Value)
	return &o.Value, nil
}

// flexible turns an array of characters whose length BTF does not give into a
// pointer to a string that ends with a NUL. It refuses other arrays of unknown
// length.
func (b *binder) flexible(o *operand, a *btf.Array, e spec.Expr) error {
	if !compiler.IsChar(a.Type) || len(o.Path) == 0 {
		return b.errorf(e.Span(), "'%s' is an array of unknown length", e).WithHint("name an element: %s", &spec.Index{X: e})
	}
	last := &o.Path[len(o.Path)-1] // finish has copied the path
	last.Addr, last.Size, last.Direct = true, 8, false
	o.Type = &btf.Pointer{Target: a.Type}
	o.Load = &compiler.Scalar{Size: 8}
	o.Scalar = o.Load
	return nil
}

func (b *binder) bind(e spec.Expr) (operand, error) {
	if b.alias != "" && e.String() == b.alias {
		return argument(b.object, b.side), nil
	}
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
	case *spec.Range:
		return b.elements(e)
	case *spec.Deref:
		return b.deref(e)
	case *spec.Cast:
		return b.cast(e)
	case *spec.Binary:
		return b.binary(e)
	case *spec.After:
		return b.after(e)
	}
	if b.trace.Line != nil {
		return b.fetchExpr(e)
	}
	return operand{}, b.errorf(e.Span(), "%s is not a value", e)
}

// param returns the function's argument with this name, or nil.
func (b *binder) param(name string) *compiler.Param {
	for i := range b.fn.Params {
		if p := &b.fn.Params[i]; p.Name == name {
			return p
		}
	}
	return nil
}

func (b *binder) arg(e *spec.Arg) (operand, error) {
	if p := b.param(e.Name.Name); p != nil {
		return argument(p, compiler.AtEntry), nil
	}
	if b.trace.Values {
		return operand{}, b.noArgument(e)
	}
	err := b.errorf(e.Span(), "%s has no argument '%s'", b.subject(), e.Name.Name).WithKind(spec.NoArgument)
	if b.habit(err, e.Name.Name) {
		return operand{}, err
	}
	if len(b.fn.Params) == 0 {
		return operand{}, err.WithHint("it takes no arguments")
	}
	if near, ok := spec.Nearest(e.Name.Name, slices.Values(paramNames(b.fn))); ok {
		return operand{}, err.WithMeant("%s", near)
	}
	err = err.WithKind(spec.NamesInHint)
	if unnamed(b.fn) {
		return operand{}, err.WithHint("the BTF of this kernel has no names for them: it has %s", strings.Join(paramNames(b.fn), ", "))
	}
	return operand{}, err.WithHint("it has %s", strings.Join(paramNames(b.fn), ", "))
}

func argument(p *compiler.Param, side compiler.Side) operand {
	return operand{Value: compiler.Value{Type: p.Type, Side: side, Base: compiler.Base{Param: p}}, known: true}
}

func (b *binder) result(at spec.Span) (operand, error) {
	fn := b.fn
	switch {
	case fn.Untyped:
		return b.untypedResult(), nil
	case fn.Tracepoint:
		return operand{}, b.errorf(at, "%s is a tracepoint, which returns nothing", b.subject()).WithKind(spec.NoResult)
	case fn.Iterator:
		return operand{}, b.errorf(at, "%s is an iterator, which returns nothing", b.subject()).WithKind(spec.NoResult)
	case fn.Result == nil:
		return operand{}, b.errorf(at, "%s returns void", b.subject()).WithKind(spec.NoResult)
	case neverReturns[fn.Name]:
		return operand{}, b.errorf(at, "%s never returns", b.subject()).WithKind(spec.NoResult)
	case resultLost(fn):
		return operand{}, b.errorf(at, "%s returns %s in memory, and %s keeps its address only until the function begins",
			b.subject(), describe(fn.Result.Type), b.target.Arch.Name).WithHint("name arguments instead")
	}
	o := argument(fn.Result, compiler.AtReturn)
	if fn.Result.InMemory {
		o.Path = []compiler.Access{{}}
	}
	return o, nil
}

// finish turns an operand into a value. It sets the size of the last access.
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

// sizeLast sets the size of the access that reads the value.
func (o *operand) sizeLast(size int) {
	o.Path = slices.Clone(o.Path) // other values may share it
	last := &o.Path[len(o.Path)-1]
	if last.Size == 0 {
		last.Size = size
		_, last.Pointer = btf.As[*btf.Pointer](o.Type)
		if o.Load != nil && len(o.Casts) > 0 {
			last.Size = o.Load.Size
		}
	}
	if o.field != nil {
		last.Size = (o.field.Shift + o.field.Bits + 7) / 8
	}
	last.Direct = last.Direct && o.Load != nil && o.field == nil && last.Off >= 0 && last.Off+last.Size <= 1<<15
}

// part reports whether an operand in words is a part of a structure.
func (o *operand) part() bool {
	return o.Type != o.Base.Param.Type && len(o.Casts) == 0 && isStructure(o.Base.Param.Type)
}

// partOfWords determines the word that holds a member of a structure passed by
// value.
func (b *binder) partOfWords(o *operand, e spec.Expr) error {
	o.Base.Word = o.bits / 64
	shift := o.bits % 64
	if o.Base.Word >= len(o.Base.Param.Words) {
		return b.errorf(e.Span(), "'%s' lies behind an argument that is passed by value", e)
	}
	if o.Load == nil {
		size, _ := btf.Sizeof(o.Type) // finish has checked the size
		if shift != 0 && shift+8*size <= 64 {
			return b.errorf(e.Span(), "'%s' lies inside a word of an argument that is passed by value", e).
				WithHint("name a member or an element of it, or record the whole argument")
		} else if shift != 0 {
			return b.errorf(e.Span(), "'%s' lies across the words of an argument that is passed by value", e).
				WithHint("record the whole argument")
		}
		return nil
	}
	load := *o.Load
	load.Bits = load.Width()
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

// followPointer decides what is captured of a pointer's target.
func followPointer(v *compiler.Value) {
	ptr, ok := btf.As[*btf.Pointer](v.Type)
	if !ok {
		return
	}
	if compiler.IsChar(ptr.Target) {
		v.Pointee, v.Text = ptr.Target, compiler.KernelText
		return
	}
	if size, err := btf.Sizeof(ptr.Target); err == nil && size > 0 {
		v.Pointee = ptr.Target
	}
}

func paramNames(fn *compiler.Function) (names []string) {
	for _, p := range fn.Params {
		names = append(names, p.Name)
	}
	return names
}
