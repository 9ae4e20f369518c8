package resolve

import (
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// fetch binds an argument of an event with its type.
func (b *binder) fetch(item *spec.Item) (*compiler.Value, error) {
	x, t := item.Value, item.Type
	if t != nil && (t.Name == "%pd" || t.Name == "%pD") {
		x, t = dentryName(x, t)
	}
	if spec.FetchesText(x) {
		return b.value(x, spec.Ident{})
	}
	o, err := b.bind(x)
	if err != nil {
		return nil, err
	}
	switch {
	case t == nil:
		err = b.byType(&o, x)
	case t.Count > 0:
		err = b.array(&o, x, t)
	case t.Name == "symstr":
		err = b.numberOf(&o, x, &spec.FetchType{Name: "symbol", At: t.At})
	case t.IsText():
		err = b.string(&o, x, t)
	default:
		err = b.numberOf(&o, x, t)
	}
	readEither(&o.Value)
	return &o.Value, err
}

// readEither makes a value of a line be read as the kernel reads it: without a u, an address
// of the process is read as one, too.
func readEither(v *compiler.Value) {
	v.Path = slices.Clone(v.Path)
	for i := range v.Path {
		if v.Path[i].In == compiler.KernelSpace {
			v.Path[i].In, v.Path[i].Direct = compiler.EitherSpace, false
		}
	}
	if v.Text == compiler.KernelText {
		v.Text = compiler.EitherText
	}
}

// dentryName returns the expression and the type for the name of the struct
// dentry that x points to, or of the dentry of the struct file that x points to.
func dentryName(x spec.Expr, t *spec.FetchType) (spec.Expr, *spec.FetchType) {
	at := x.Span()
	pointer := func(name string) spec.Expr {
		return &spec.Cast{Type: spec.TypeName{Name: "struct " + name, Stars: 1, At: at}, X: x, At: at}
	}
	member := func(x spec.Expr, dot bool, name string) spec.Expr {
		return &spec.Member{X: x, Dot: dot, Name: spec.Ident{Name: name, At: at}}
	}
	dentry := pointer("dentry")
	if t.Name == "%pD" {
		dentry = member(member(pointer("file"), false, "f_path"), true, "dentry")
	}
	return member(member(dentry, false, "d_name"), true, "name"), &spec.FetchType{Name: "string", At: t.At}
}

// byType gives a value its type in BTF; without one it is a word.
func (b *binder) byType(o *operand, x spec.Expr) error {
	if err := b.finish(o, x); err != nil {
		return err
	}
	if o.Scalar == nil {
		return b.errorf(x.Span(), "'%s' is %s, no number", x, describe(o.Type)).WithHint("name a member of it, or give it a type")
	}
	letter := "u"
	switch _, pointer := btf.As[*btf.Pointer](o.Type); {
	case pointer, o.untyped:
		letter = "x"
	case o.Scalar.Signed:
		letter = "s"
	}
	o.Format = letter + strconv.Itoa(8*o.Scalar.Size)
	return nil
}

// numberOf converts a value to a number. A value without a type in BTF is read
// as a number.
func (b *binder) numberOf(o *operand, x spec.Expr, t *spec.FetchType) error {
	typ, s := numberType(t)
	switch address := len(o.Path) > 0 && o.Path[len(o.Path)-1].Addr; {
	case (o.untyped || o.wholeArgument()) && !address:
		o.Type, o.field = typ, nil
		if s.IsField() {
			o.field = s
		}
		if err := b.finish(o, x); err != nil {
			return err
		}
	default:
		if err := b.finish(o, x); err != nil {
			return err
		}
		if o.Scalar == nil {
			return b.errorf(t.At, "'%s' is %s, no number", x, describe(o.Type)).WithHint("name a member of it")
		}
		o.Type = typ
		o.Casts = append(o.Casts[:len(o.Casts):len(o.Casts)], *s)
		o.Scalar = s
	}
	o.Format = numberFormat(t)
	return nil
}

// wholeArgument reports whether a value is an argument that is a number, without a
// cast. If a line gives it a wider type, the other bits of its register count.
func (o *operand) wholeArgument() bool {
	return len(o.Path) == 0 && len(o.Casts) == 0 && o.field == nil &&
		o.Base.Param != nil && o.Type == o.Base.Param.Type && scalarOf(o.Type) != nil
}

// numberFormat returns the format in which a number of a type is shown.
func numberFormat(t *spec.FetchType) string {
	switch t.Name {
	case "":
		return "u"
	case "char":
		return "c"
	}
	return t.Name
}

// numberType returns the type of a number, and how it is read.
func numberType(t *spec.FetchType) (btf.Type, *compiler.Scalar) {
	width, signed := t.Bits()
	if t.Name == "" {
		size := t.Field.Container / 8
		s := &compiler.Scalar{Size: size}
		if t.Field.Width < t.Field.Container {
			s.Shift, s.Bits = t.Field.Offset, t.Field.Width
		}
		return intType("u"+strconv.Itoa(8*size), uint32(size), btf.Unsigned), s
	}
	encoding, name := btf.Unsigned, "u"
	if signed {
		encoding, name = btf.Signed, "s"
	}
	typ := intType(name+strconv.Itoa(width), uint32(width/8), encoding)
	return typ, scalarOf(typ)
}

// array turns a value in memory into an array.
func (b *binder) array(o *operand, x spec.Expr, t *spec.FetchType) error {
	if err := b.inMemory(o, x); err != nil {
		return err
	}
	elem, s := numberType(t)
	last := o.Path[len(o.Path)-1]
	last.Size, last.Addr = 0, false
	o.Path = appendPath(o.Path[:len(o.Path)-1], last)
	o.Type = &btf.Array{Type: elem, Nelems: uint32(t.Count)}
	o.Load, o.Casts, o.field = nil, nil, nil
	o.Elem = &compiler.Value{Type: elem, Format: numberFormat(t), Load: s, Scalar: s}
	switch {
	case s.Signed:
		o.Elem.Format = "d"
	case strings.HasPrefix(t.Name, "u"):
		o.Elem.Format = "u"
	}
	return b.finish(o, x)
}

// inMemory returns an error unless o is in memory, as an array must be.
func (b *binder) inMemory(o *operand, x spec.Expr) error {
	if len(o.Path) > 0 {
		return nil
	}
	return b.errorf(x.Span(), "'%s' is passed by value, and no array in memory", x)
}

// strings returns the strings that an array in memory has pointers to. Each is
// a value of its own, as any of them may be unreadable.
func (b *binder) strings(item *spec.Item) ([]*compiler.Value, error) {
	o, err := b.bind(item.Value)
	if err != nil {
		return nil, err
	}
	if err := b.inMemory(&o, item.Value); err != nil {
		return nil, err
	}
	var values []*compiler.Value
	for i := range item.Type.Count {
		v := o.Value
		v.Path = slices.Clone(o.Path)
		last := &v.Path[len(v.Path)-1]
		last.Off += 8 * i
		last.Size, last.Addr, last.Direct = 8, false, false
		v.Type, v.Format = &btf.Pointer{Target: intType("char", 1, btf.Signed)}, item.Type.Name
		v.Load, v.Casts = &compiler.Scalar{Size: 8}, nil
		v.Scalar = v.Load
		followText(&v, compiler.KernelText)
		if last.In == compiler.UserSpace || item.Type.Name == "ustring" {
			v.Format = "ustring"
			followText(&v, compiler.UserText)
		}
		readEither(&v)
		values = append(values, &v)
	}
	return values, nil
}

// flexibleBytes reports whether o is an array of bytes in memory whose length BTF does not give.
func (o *operand) flexibleBytes() bool {
	a, ok := btf.As[*btf.Array](o.Type)
	if !ok || a.Nelems > 0 || len(o.Path) == 0 {
		return false
	}
	size, err := btf.Sizeof(a.Type)
	return err == nil && size == 1
}

// string turns a value into a string: the memory at its place, or the string
// that BTF says it is.
func (b *binder) string(o *operand, x spec.Expr, t *spec.FetchType) error {
	if !o.untyped && !(t.Name == "string" && o.flexibleBytes()) {
		if err := b.finish(o, x); err != nil {
			return err
		}
		o.Name = x.String() // for errors
		return b.format(&o.Value, spec.Ident{Name: t.Name, At: t.At})
	}
	last := o.Path[len(o.Path)-1]
	text := compiler.KernelText
	o.Format = t.Name
	if last.In == compiler.UserSpace || t.Name == "ustring" {
		text, o.Format = compiler.UserText, "ustring"
	}
	last.Addr, last.Size = true, 8
	o.Path = appendPath(o.Path[:len(o.Path)-1], last)
	o.Type, o.Load = &btf.Pointer{Target: intType("char", 1, btf.Signed)}, &compiler.Scalar{Size: 8}
	o.Scalar = o.Load
	followText(&o.Value, text)
	return nil
}
