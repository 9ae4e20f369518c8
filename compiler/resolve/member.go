package resolve

import (
	"errors"
	"iter"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

func (b *binder) member(e *spec.Member) (operand, error) {
	o, err := b.bind(e.X)
	if err != nil {
		return o, b.meansResult(e, err)
	}
	if e.Dot {
		if !isStructure(o.Type) {
			return o, b.noDot(e, &o)
		}
	} else if o, err = b.arrow(e, o); err != nil {
		return o, err
	}
	at, ok := compiler.FindMember(o.Type, e.Name.Name)
	if !ok {
		return o, b.noMember(e, o.Type)
	}
	return b.part(o, at, e)
}

// meansResult proposes the return value instead of a name that no argument has, if it
// points to something with the member.
func (b *binder) meansResult(e *spec.Member, err error) error {
	var refused *spec.Error
	if _, isName := e.X.(*spec.Arg); !isName || e.Dot || !errors.As(err, &refused) || refused.Kind != spec.NamesInHint || !b.knows("return") {
		return err
	}
	target, ok := pointee(b.fn.Result.Type)
	if !ok {
		return err
	}
	if _, has := compiler.FindMember(target, e.Name.Name); has {
		return refused.WithKind(spec.NoArgument).WithMeant("return")
	}
	return err
}

// noDot returns the error for '.' after something that is not a structure.
func (b *binder) noDot(e *spec.Member, o *operand) error {
	err := b.errorf(e.Name.At, "'%s' is not a struct or union, so '.%s' has no meaning", e.X, e.Name.Name)
	if o.untyped {
		return err.WithHint("BTF has no type of it; a cast says what it is: ((struct NAME)%s).%s", e.X, e.Name.Name)
	}
	if ptr, ok := btf.As[*btf.Pointer](o.Type); ok && isStructure(ptr.Target) {
		return err.WithHint("it is a pointer: write '%s'", &spec.Member{X: e.X, Name: e.Name})
	}
	return err
}

// arrow returns the structure that o points to.
func (b *binder) arrow(e *spec.Member, o operand) (operand, error) {
	target, ok := pointee(o.Type)
	if !ok {
		err := b.errorf(e.Name.At, "'%s' is not a pointer to a struct or union, so '->%s' has no meaning", e.X, e.Name.Name)
		if o.untyped {
			err = err.WithHint("BTF has no type of it; a cast says what it is: ((struct NAME *)%s)->%s", e.X, e.Name.Name)
		}
		if isStructure(o.Type) {
			err = err.WithHint("it is the %s itself: write '%s'", structureKind(o.Type), &spec.Member{X: e.X, Dot: true, Name: e.Name})
		}
		return o, err
	}
	if !isStructure(target) {
		return o, b.errorf(e.Name.At, "'%s' does not point to a struct or union with known members", e.X)
	}
	return b.follow(o, e.X)
}

// pointee returns the target of a pointer, or the element type of an array.
func pointee(t btf.Type) (btf.Type, bool) {
	if p, ok := btf.As[*btf.Pointer](t); ok {
		return p.Target, true
	}
	if a, ok := btf.As[*btf.Array](t); ok {
		return a.Type, true
	}
	return nil, false
}

// follow returns *o for a pointer or an array.
func (b *binder) follow(o operand, e spec.Expr) (operand, error) {
	if a, ok := btf.As[*btf.Array](o.Type); ok {
		return b.element(o, a, 0, e)
	}
	ptr, _ := btf.As[*btf.Pointer](o.Type)
	direct := o.known && !tagged(o.Type) && isStructure(ptr.Target)
	if n := len(o.Path); n > 0 && o.Path[n-1].Addr { // an address that has not been read
		o.Path = appendPath(o.Path[:n-1], compiler.Access{Off: o.Path[n-1].Off})
		o.Type, o.Load, o.Casts = ptr.Target, nil, nil
		return o, nil
	}
	if err := b.finish(&o, e); err != nil {
		return o, err
	}
	if !o.plainWord() {
		return o, b.errorf(e.Span(), "'%s' is made of a number of fewer than 64 bits, and cannot be followed", e)
	}
	o.Path = appendPath(o.Path, compiler.Access{Direct: direct})
	if n := o.Base.Number; n != nil {
		o.Base = compiler.Base{Addr: *n}
	}
	o.Type, o.Load, o.Scalar, o.Casts, o.field, o.bits = ptr.Target, nil, nil, nil, nil, 0
	return o, nil
}

// appendPath copies the path before appending, because other values may share
// it.
func appendPath(path []compiler.Access, a compiler.Access) []compiler.Access {
	return append(append([]compiler.Access(nil), path...), a)
}

// part narrows the structure o to a member.
func (b *binder) part(o operand, at compiler.MemberPlace, e *spec.Member) (operand, error) {
	o.Type = at.Member.Type
	bits := int(at.Offset)
	if n := int(at.Member.BitfieldSize); n > 0 {
		o.field = scalarOf(o.Type)
		if shift := bits % 8; o.field == nil || shift+n > 64 {
			return o, b.errorf(e.Name.At, "'%s' is a bitfield across 8 bytes, which cannot be read", at.Member.Name)
		}
		o.field.Shift, o.field.Bits = bits%8, n
	}
	if len(o.Path) == 0 {
		o.bits += bits
		return o, nil
	}
	o.move(bits/8, at.InUnion)
	return o, nil
}

// move adds to the offset of the last access.
func (o *operand) move(off int, indirect bool) {
	last := o.Path[len(o.Path)-1]
	last.Off += off
	last.Direct = last.Direct && !indirect
	o.Path = appendPath(o.Path[:len(o.Path)-1], last)
}

func (b *binder) index(e *spec.Index) (operand, error) {
	o, err := b.bind(e.X)
	if err != nil {
		return o, err
	}
	if a, ok := btf.As[*btf.Array](o.Type); ok {
		if n := uint64(a.Nelems); n > 0 && e.N >= n {
			return o, b.errorf(e.At, "'%s' has %d elements, from [0] to [%d]", e.X, n, n-1)
		}
		return b.element(o, a, e.N, e)
	}
	elem, ok := pointee(o.Type)
	if !ok {
		err := b.errorf(e.At, "'%s' is %s, neither an array nor a pointer, so '[%d]' has no meaning", e.X, describe(o.Type), e.N)
		if o.untyped {
			err = err.WithHint("a cast says what it is: ((u64[%d])%s)[%d]", e.N+1, e.X, e.N)
		}
		return o, err
	}
	size, err := btf.Sizeof(elem)
	if err != nil || size == 0 {
		return o, b.errorf(e.At, "'%s' points to elements of unknown size", e.X)
	}
	if o, err = b.follow(o, e.X); err != nil {
		return o, err
	}
	return b.shift(o, e.N, size, e)
}

// element narrows the array o to an element.
func (b *binder) element(o operand, a *btf.Array, n uint64, e spec.Expr) (operand, error) {
	if len(o.Path) == 0 && o.Base.Builtin != compiler.NoBuiltin { // a helper writes it as a whole
		whole, _, _ := strings.Cut(e.String(), "[")
		err := b.errorf(e.Span(), "'%s' can only be read as a whole", whole)
		if o.Base.Builtin == compiler.Comm {
			err = err.WithHint("its characters are those of $task->comm, as in $task->comm[0]")
		}
		return o, err
	}
	size, err := btf.Sizeof(a.Type)
	if err != nil {
		return o, b.errorf(e.Span(), "'%s' is an array of elements of unknown size", e)
	}
	o.Type = a.Type
	return b.shift(o, n, size, e)
}

// farthest is the largest offset of an access.
const farthest = 1 << 30

func (b *binder) shift(o operand, n uint64, size int, e spec.Expr) (operand, error) {
	if n > uint64(farthest/max(size, 1)) {
		return o, b.errorf(e.Span(), "'%s' is more than a gigabyte away from where the array begins", e)
	}
	if len(o.Path) == 0 {
		o.bits += int(n) * size * 8
		return o, nil
	}
	o.move(int(n)*size, true)
	return o, nil
}

func (b *binder) deref(e *spec.Deref) (operand, error) {
	o, err := b.bind(e.X)
	if err != nil {
		return o, err
	}
	target, ok := pointee(o.Type)
	if !ok {
		err := b.errorf(e.At, "'%s' is %s, not a pointer, so '*' has no meaning", e.X, describe(o.Type))
		if o.untyped {
			err = err.WithHint("a cast says what it is: *(u64 *)%s", e.X)
		}
		return o, err
	}
	if size, err := btf.Sizeof(target); err != nil || size == 0 {
		return o, b.errorf(e.At, "'%s' points to something of unknown size", e.X).
			WithHint("say what it is with a cast: *%s", castTo("u64 *", e.X))
	}
	return b.follow(o, e.X)
}

// memberNames iterates over the names that [compiler.FindMember] can find.
func memberNames(t btf.Type) iter.Seq[string] {
	return func(yield func(string) bool) { yieldMembers(t, map[btf.Type]bool{}, 0, yield) }
}

func yieldMembers(t btf.Type, seen map[btf.Type]bool, depth int, yield func(string) bool) bool {
	for _, m := range compiler.UnseenMembers(t, seen, depth) {
		if m.Name != "" && !yield(m.Name) || m.Name == "" && !yieldMembers(m.Type, seen, depth+1, yield) {
			return false
		}
	}
	return true
}
