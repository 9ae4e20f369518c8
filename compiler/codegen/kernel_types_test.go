package codegen

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler/compilertest"
)

// cType is a type of a random kernel, as C sees it. The results of generated
// code are compared with an evaluation over these types, which does not use
// BTF.
type cType struct {
	kind        cKind
	name        string // as in a cast; "" for a type without a name
	size, align int
	signed      bool
	to          *cType // target of a pointer, or element type of an array
	n           int    // number of elements
	members     []cMember
	enumerators []btf.EnumValue // with sign-extended values
	as          btf.Type
	links       map[string]link // what pointers of a structure mostly are, by their names
	many        bool            // whether there are more objects than of other types
}

type cKind int

const (
	cVoid cKind = iota
	cInt
	cBool
	cEnum
	cPointer
	cArray
	cRecord
)

// cMember is a member. A member without a name is transparent.
type cMember struct {
	name   string
	typ    *cType
	offset int // in bits
	bits   int // width of a bitfield, or 0
}

func (t *cType) scalar() bool     { return t.kind >= cInt && t.kind <= cPointer }
func (t *cType) isChar() bool     { return t.kind == cInt && t.size == 1 && t.char() }
func (t *cType) string() bool     { return t.kind == cArray && t.to.isChar() }
func (t *cType) char() bool       { i, ok := btf.As[*btf.Int](t.as); return ok && i.Name == "char" }
func (t *cType) has(k cKind) bool { return t.kind == cPointer && t.to.kind == k }

func cNumber(name, typeName string, size int, signed bool) *cType {
	encoding := btf.Unsigned
	if signed {
		encoding = btf.Signed
	}
	return &cType{
		kind: cInt, name: name, size: size, align: size, signed: signed,
		as: &btf.Int{Name: typeName, Size: uint32(size), Encoding: encoding},
	}
}

func pointerTo(t *cType) *cType {
	p := &cType{kind: cPointer, size: 8, align: 8, to: t, as: &btf.Pointer{Target: t.as}}
	if t.name != "" {
		p.name = t.name + " *"
	}
	return p
}

func arrayOf(t *cType, n int) *cType {
	return &cType{
		kind: cArray, size: n * t.size, align: t.align, to: t, n: n,
		as: &btf.Array{Index: compilertest.Uint, Type: t.as, Nelems: uint32(n)},
	}
}

var (
	cNothing = &cType{kind: cVoid, name: "void", align: 1, as: &btf.Void{}}
	cChar    = cNumber("char", "char", 1, true)
	cStack   = arrayOf(cNumber("", "unsigned long", 8, false), 256) // larger than a part of a key
	cByte    = cNumber("unsigned char", "unsigned char", 1, false)
)

// plainScalars returns the numbers of C and some enums.
func plainScalars() []*cType {
	types := []*cType{
		cChar, cNumber("signed char", "signed char", 1, true), cByte,
		cNumber("short", "short int", 2, true), cNumber("unsigned short", "short unsigned int", 2, false),
		cNumber("int", "int", 4, true), cNumber("unsigned int", "unsigned int", 4, false),
		cNumber("long", "long int", 8, true), cNumber("unsigned long", "long unsigned int", 8, false),
		{kind: cBool, name: "_Bool", size: 1, align: 1, as: compilertest.Bool},
	}
	for i, e := range []struct {
		size           int
		signed, stored bool // as declared, and as stored in BTF
		values         []int64
	}{
		{4, false, false, []int64{0, 1, 7}}, {4, true, true, []int64{-3, 0, 5}}, {4, true, false, []int64{-1, 0, 2}},
		{1, false, false, []int64{1, 2, 200}}, {8, true, true, []int64{-1 << 40, 3}}, {8, false, false, []int64{1 << 40, 2}},
	} {
		types = append(types, cEnumOf(i, e.size, e.signed, e.stored, e.values))
	}
	return types
}

func cEnumOf(i, size int, signed, stored bool, values []int64) *cType {
	enum := &btf.Enum{Name: fmt.Sprintf("e%d", i), Size: uint32(size), Signed: stored}
	t := &cType{kind: cEnum, name: "enum " + enum.Name, size: size, align: size, signed: signed, as: enum}
	for j, v := range values {
		value := btf.EnumValue{Name: fmt.Sprintf("E%d_%d", i, j), Value: uint64(v)}
		t.enumerators = append(t.enumerators, value)
		if !stored && size == 4 {
			value.Value = uint64(uint32(v))
		}
		enum.Values = append(enum.Values, value)
	}
	return t
}

// typeMaker creates the types of a kernel.
type typeMaker struct {
	rnd      *rand.Rand
	scalars  []*cType
	records  []*cType // filled in this order: a structure contains only earlier ones
	files    *pathTypes
	filled   int
	typedefs int
	names    int
}

func newTypes(rnd *rand.Rand) *typeMaker {
	m := &typeMaker{rnd: rnd, scalars: plainScalars()}
	for i := range 5 {
		tag := fmt.Sprintf("r%d", i)
		m.records = append(m.records, &cType{kind: cRecord, name: "struct " + tag, as: &btf.Struct{Name: tag}})
		if rnd.IntN(5) == 0 {
			m.records[i].name, m.records[i].as = "union "+tag, &btf.Union{Name: tag}
		}
	}
	m.files = m.newPathTypes()
	own := m.records
	m.records = append(slices.Clone(own), m.files.path, m.files.file, m.files.dentry)
	for _, r := range own {
		m.fill(r, 1+rnd.IntN(7), rnd.IntN(8) == 0)
		m.filled++
	}
	return m
}

// typedef sometimes gives a complete type another name.
func (m *typeMaker) typedef(t *cType) *cType {
	if m.rnd.IntN(5) != 0 {
		return t
	}
	m.typedefs++
	td := *t
	td.name = fmt.Sprintf("t%d_t", m.typedefs)
	td.as = &btf.Typedef{Name: td.name, Type: t.as}
	return &td
}

// member returns a type for a member.
func (m *typeMaker) member() *cType {
	switch n := m.rnd.IntN(12); {
	case n < 4:
		return m.typedef(pick(m.rnd, m.scalars))
	case n < 7:
		return m.typedef(m.pointer())
	case n < 8:
		return arrayOf(cChar, 1+m.rnd.IntN(20))
	case n < 10 && m.filled > 0 && m.small(m.records[m.filled-1]):
		return m.typedef(pick(m.rnd, m.records[:m.filled]))
	case n < 11 && m.rnd.IntN(3) == 0: // room for an address
		return arrayOf(cByte, pick(m.rnd, []int{4, 6, 16}))
	case n < 11:
		return arrayOf(m.element(), 1+m.rnd.IntN(3))
	}
	return m.anonymous()
}

func (m *typeMaker) small(t *cType) bool { return t.size < 200 }

func (m *typeMaker) element() *cType {
	switch m.rnd.IntN(4) {
	case 0:
		return m.pointer()
	case 1:
		return arrayOf(pick(m.rnd, m.scalars), 2)
	}
	return pick(m.rnd, m.scalars)
}

func (m *typeMaker) pointer() *cType {
	var t *cType
	switch n := m.rnd.IntN(10); {
	case n < 5:
		t = pick(m.rnd, m.records)
	case n < 7:
		t = cChar
	case n < 8:
		t = pointerTo(pick(m.rnd, m.records))
	case n < 9:
		t = pick(m.rnd, m.scalars)
	default:
		t = cNothing
	}
	p := pointerTo(t)
	if m.rnd.IntN(4) == 0 {
		p.as = &btf.Pointer{Target: &btf.Const{Type: t.as}}
	}
	return p
}

// anonymous returns a structure or union without a name.
func (m *typeMaker) anonymous() *cType {
	t := &cType{kind: cRecord, as: &btf.Struct{}}
	if m.rnd.IntN(2) == 0 {
		t.as = &btf.Union{}
	}
	m.fill(t, 1+m.rnd.IntN(2), false)
	return t
}

func pick[T any](rnd *rand.Rand, from []T) T { return from[rnd.IntN(len(from))] }
