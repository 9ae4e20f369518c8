package resolve

import (
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

func (b *binder) cast(e *spec.Cast) (operand, error) {
	o, isNumber, err := b.castNumber(e)
	if err == nil && !isNumber {
		o, err = b.bind(e.X)
	}
	if err != nil {
		return o, err
	}
	t, err := b.typeNamed(e.Type)
	if err != nil {
		return o, err
	}
	if e.Type.Stars > 0 && e.Type.Count == 0 {
		return b.castToPointer(o, t, e)
	}
	if s := scalarOf(t); s != nil && !o.untyped {
		return b.castToNumber(o, t, s, e)
	}
	if len(o.Path) == 0 || o.field != nil || len(o.Casts) > 0 || o.Path[len(o.Path)-1].Size != 0 {
		return o, b.errorf(e.At, "'%s' is not in memory, so it cannot be looked at as %s", e.X, describe(t))
	}
	// The memory is reinterpreted as another type.
	o.Type, o.known, o.untyped = t, false, false
	o.move(0, true)
	return o, nil
}

// castToPointer converts an address to a pointer. The address may be a pointer,
// an integer of its size, or the beginning of an array.
func (b *binder) castToPointer(o operand, t btf.Type, e *spec.Cast) (operand, error) {
	if _, ok := btf.As[*btf.Array](o.Type); ok && len(o.Path) > 0 {
		last := o.Path[len(o.Path)-1]
		o.Path = appendPath(o.Path[:len(o.Path)-1], compiler.Access{Off: last.Off, Size: 8, Addr: true})
	} else if err := b.finish(&o, e.X); err != nil {
		return o, err
	} else if o.Scalar == nil || o.Scalar.Width() != 64 {
		return o, b.errorf(e.At, "'%s' is %s, which does not have the size of a pointer", e.X, describe(o.Type))
	}
	o.Type, o.known, o.untyped = t, false, false
	if o.Load == nil {
		o.Load = &compiler.Scalar{Size: 8}
	}
	o.Casts = append(slices.Clone(o.Casts), compiler.Scalar{Size: 8})
	if o.plainWord() {
		load := *o.Load
		load.Signed = false
		o.Load, o.Casts = &load, nil
	}
	return o, nil
}

// plainWord reports whether the number is the 64 bits that are read, which no cast
// shortens.
func (o *operand) plainWord() bool {
	for i := range o.Casts {
		if o.Casts[i].Width() != 64 {
			return false
		}
	}
	return o.Load != nil && o.Load.Width() == 64
}

// castToNumber converts a value to a number as C does.
func (b *binder) castToNumber(o operand, t btf.Type, s *compiler.Scalar, e *spec.Cast) (operand, error) {
	if err := b.finish(&o, e.X); err != nil {
		return o, err
	}
	if o.Scalar == nil {
		return o, b.errorf(e.At, "'%s' is %s, which is not a number", e.X, describe(o.Type))
	}
	o.Type, o.known = t, false
	o.Casts = append(slices.Clone(o.Casts), *s)
	return o, nil
}

// typeNamed returns the type that a cast names.
func (b *binder) typeNamed(name spec.TypeName) (btf.Type, error) {
	t, err := b.bareType(name)
	if err != nil {
		return nil, err
	}
	if compiler.IsVoid(t) && name.Stars == 0 {
		return nil, b.errorf(name.At, "void has no values").WithHint("a pointer to anything is 'void *'")
	}
	for range name.Stars {
		t = &btf.Pointer{Target: t}
	}
	if name.Count == 0 {
		return t, nil
	}
	if size, err := btf.Sizeof(t); err != nil || size == 0 || name.Count > uint64(farthest/size) {
		return nil, b.errorf(name.At, "there is no array '%s': it would have no size, or more than a gigabyte", name)
	}
	return &btf.Array{Type: t, Index: intType("unsigned int", 4, btf.Unsigned), Nelems: uint32(name.Count)}, nil
}

func (b *binder) bareType(name spec.TypeName) (btf.Type, error) {
	if t := baseType(name.Name); t != nil {
		if own := typesNamed(b.target.Kernel, "", "char"); name.Name == "char" && len(own) > 0 {
			return own[0], nil // kernels differ in its sign
		}
		return t, nil
	}
	kind, bare := "", name.Name
	if k, rest, ok := strings.Cut(bare, " "); ok && slices.Contains([]string{"struct", "union", "enum"}, k) {
		kind, bare = k, rest
	}
	var found []btf.Type
	for _, types := range specsOf(b.fn, b.target) {
		if found = typesNamed(types, kind, bare); len(found) > 0 {
			break
		}
	}
	var in []string // modules
	if len(found) == 0 && b.trace.Values && b.target.Modules != nil {
		for _, m := range b.target.Modules() {
			if types := b.moduleTypes(m); types != nil {
				if more := typesNamed(types, kind, bare); len(more) > 0 {
					found, in = append(found, more...), append(in, m)
				}
			}
		}
	}
	if len(found) == 0 && kind == "enum" {
		// Many enums have no name. Each of their enumerators stands for it.
		if err := b.uncertain(bare, name.At); err != nil {
			return nil, err
		}
		if e, _ := b.enumWith(bare); e != nil {
			return e, nil
		}
	}
	if len(found) == 0 {
		return nil, b.unknownType(name, kind, bare)
	}
	for _, t := range found[1:] {
		if !sameLayout(t, found[0]) {
			err := b.errorf(name.At, "there are %d types '%s' in this kernel, which differ", len(found), name.Name)
			if len(in) == 0 {
				return nil, err.WithHint("without a cast, arguments and members have the one that is meant")
			}
			return nil, err.WithHint("they are in %s: a variable of one of them has its types", strings.Join(in, ", "))
		}
	}
	return found[0], nil
}

// sameLayout reports whether two types have the same size, the same members at the same
// places, if they have members, and the same enumerators.
func sameLayout(t, other btf.Type) bool {
	if e, ok := btf.As[*btf.Enum](t); ok {
		o, same := btf.As[*btf.Enum](other)
		return same && e.Size == o.Size && slices.Equal(e.Values, o.Values)
	}
	size, _ := btf.Sizeof(t)
	otherSize, _ := btf.Sizeof(other)
	members, _ := compiler.Members(t)
	others, _ := compiler.Members(other)
	return size == otherSize && slices.EqualFunc(members, others, func(m, o btf.Member) bool {
		return m.Name == o.Name && m.Offset == o.Offset && m.BitfieldSize == o.BitfieldSize
	})
}

// typesNamed returns the types with this name whose keyword is kind, see [TypeKind].
func typesNamed(types *btf.Spec, kind, bare string) (found []btf.Type) {
	named, _ := types.AnyTypesByName(bare) // an error means that there are none
	for _, t := range named {
		if k, ok := TypeKind(t); ok && k == kind {
			found = append(found, t)
		}
	}
	return found
}

func (b *binder) unknownType(name spec.TypeName, kind, bare string) error {
	err := b.errorf(name.At, "there is no type '%s' in this kernel", name.Name)
	var other string
	found, _ := b.target.Kernel.AnyTypesByName(bare)
	for _, t := range found {
		if k, ok := TypeKind(t); ok {
			other = strings.TrimSpace(k + " " + bare)
		}
	}
	near, ok := NearestName(b.target, b.target.Kernel, bare, kind)
	switch {
	case other != "":
		return err.WithMeant("%s", other)
	case ok:
		return err.WithMeant("%s", strings.TrimSpace(kind+" "+near))
	}
	return err
}

// TypeKind returns the keyword that C puts before the name of a type, or "" for
// types whose names stand alone. It returns false for types without values.
func TypeKind(t btf.Type) (kind string, ok bool) {
	switch t.(type) {
	case *btf.Struct:
		return "struct", true
	case *btf.Union:
		return "union", true
	case *btf.Enum:
		return "enum", true
	case *btf.Typedef, *btf.Int, *btf.Float:
		return "", true
	}
	return "", false
}

// sizedInts maps the kernel's own names of integers to their size in bytes.
var sizedInts = map[string]uint32{
	"u8": 1, "u16": 2, "u32": 4, "u64": 8, "s8": 1, "s16": 2, "s32": 4, "s64": 8,
}

// baseType returns C's or the kernel's own type of that name, or nil.
func baseType(name string) btf.Type {
	if name == "void" {
		return &btf.Void{}
	}
	if size, ok := sizedInts[name]; ok {
		if name[0] == 's' {
			return intType(name, size, btf.Signed)
		}
		return intType(name, size, btf.Unsigned)
	}
	var long, size int
	encoding, char := btf.Signed, false
	size = 4
	for word := range strings.FieldsSeq(name) {
		switch word {
		case "unsigned":
			encoding = btf.Unsigned
		case "signed", "int":
		case "char":
			size, char = 1, true
		case "short":
			size = 2
		case "long":
			long, size = long+1, 8
		case "_Bool":
			return intType(name, 1, btf.Bool)
		default:
			return nil
		}
	}
	if long > 2 || char && long > 0 {
		return nil
	}
	return intType(name, uint32(size), encoding)
}

// castTo returns a value with a cast to a type, for a hint.
func castTo(name string, x spec.Expr) *spec.Cast {
	return &spec.Cast{Type: spec.TypeName{Name: name}, X: x}
}
