package btfdump

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/cilium/ebpf/btf"
)

// place is a value inside another value. The test walks types with it, and shares no
// code with the code under test.
type place struct {
	t      btf.Type // without typedefs, qualifiers and tags
	off    int
	shift  int // of a bitfield, 0 to 7
	width  int // of a bitfield, else 0
	nested bool
	array  bool // inside an array
	last   bool // only padding follows
}

func rootPlace(t btf.Type) place {
	if v, ok := t.(*btf.Var); ok {
		t = v.Type
	}
	return place{t: btf.UnderlyingType(t), last: true}
}

// inside returns the members of a structure or the elements of an array.
func (p place) inside() []place {
	var members []btf.Member
	switch v := p.t.(type) {
	case *btf.Struct:
		members = v.Members
	case *btf.Union:
		members = v.Members
	case *btf.Array:
		return p.elements(v)
	}
	_, union := p.t.(*btf.Union)
	in := make([]place, len(members))
	for i, m := range members {
		bit := int(m.Offset)
		in[i] = place{
			t: btf.UnderlyingType(m.Type), off: p.off + bit/8, shift: bit % 8, width: int(m.BitfieldSize),
			nested: true, array: p.array, last: p.last && (union || i == len(members)-1),
		}
	}
	return in
}

func (p place) elements(a *btf.Array) []place {
	elem := place{t: btf.UnderlyingType(a.Type), off: p.off, nested: true, array: true}
	size := elem.size()
	in := make([]place, a.Nelems)
	for i := range in {
		in[i] = elem
		in[i].off += i * size
	}
	return in
}

func (p place) size() int {
	size, err := btf.Sizeof(p.t)
	if err != nil {
		return 0
	}
	return size
}

// bits returns the value of a leaf of up to 64 bits, zero-extended.
func (p place) bits(data []byte) uint64 {
	if p.width == 0 {
		return bitsOf(data[p.off:p.off+p.size()], 0, 8*p.size())
	}
	return bitsOf(data[p.off:], p.shift, p.width)
}

func bitsOf(b []byte, shift, width int) (v uint64) {
	for i := range min(width, 64) {
		pos := shift + i
		v |= uint64(b[pos/8]>>(pos%8)&1) << i
	}
	return v
}

func (p place) compound() bool {
	switch p.t.(type) {
	case *btf.Struct, *btf.Union, *btf.Array:
		return true
	}
	return false
}

// zero reports whether every scalar in the value is zero.
func (p place) zero(data []byte) bool {
	if p.compound() {
		return !slices.ContainsFunc(p.inside(), func(in place) bool { return !in.zero(data) })
	}
	if p.width != 0 {
		return p.bits(data) == 0
	}
	return len(bytes.Trim(data[p.off:p.off+p.size()], "\x00")) == 0
}

// zeroToLibbpf reports whether libbpf takes the value for zero: a structure if its
// first member is zero, an array if all its elements are.
func (p place) zeroToLibbpf(data []byte) bool {
	in := p.inside()
	if _, array := p.t.(*btf.Array); array {
		return !slices.ContainsFunc(in, func(in place) bool { return !in.zeroToLibbpf(data) })
	}
	if len(in) > 0 {
		return in[0].zeroToLibbpf(data)
	}
	return p.zero(data)
}

// exclusion is a case in which libbpf is wrong or this package prints something else
// on purpose. Exclusions of types do not depend on the bytes.
type exclusion struct {
	name    string
	applies func(p place, data []byte) bool
}

var typeExclusions = []exclusion{
	{"1-byte array", byteArrayInside},
	{"signed bitfield", signedBitfield},
	{"enum at an odd address", unalignedEnum},
	{"array of empty structures", arrayOfEmpties},
	{"flexible array over padding", flexibleOverPadding},
	{"wide bitfield", wideBitfield},
}

// byteArrayInside excludes arrays of bytes inside a value. This package prints text,
// hex or flags; libbpf skips values, and leaks state from one array to the next. A
// char array that is the whole value is not excluded here, see textArray.
func byteArrayInside(p place, _ []byte) bool {
	a, ok := p.t.(*btf.Array)
	if !ok {
		return false
	}
	i, ok := btf.UnderlyingType(a.Type).(*btf.Int)
	return ok && i.Size == 1 && (p.nested || byteArray(i) != kindChars)
}

// signedBitfield excludes signed bitfields. libbpf prints them as unsigned, and looks
// up their unsigned value among the enumerators.
func signedBitfield(p place, _ []byte) bool {
	if p.width == 0 {
		return false
	}
	switch v := p.t.(type) {
	case *btf.Int:
		return v.Encoding&btf.Signed != 0
	case *btf.Enum:
		return v.Signed
	}
	return false
}

// unalignedEnum excludes enums at unaligned offsets, which libbpf reads as 0.
func unalignedEnum(p place, _ []byte) bool {
	e, ok := p.t.(*btf.Enum)
	return ok && p.width == 0 && p.off%int(e.Size) != 0
}

// arrayOfEmpties excludes arrays of elements without bytes. libbpf returns an error;
// this package prints the number of elements.
func arrayOfEmpties(p place, _ []byte) bool {
	a, ok := p.t.(*btf.Array)
	return ok && place{t: btf.UnderlyingType(a.Type)}.size() == 0
}

// flexibleOverPadding excludes arrays without elements that begin before the end of
// their structure. They have bytes, which this package prints.
func flexibleOverPadding(p place, data []byte) bool {
	a, ok := p.t.(*btf.Array)
	return ok && a.Nelems == 0 && p.last && p.off < len(data)
}

// wideBitfield excludes bitfields that span more bytes than the size of their type,
// as libbpf reads no more than that size.
func wideBitfield(p place, _ []byte) bool {
	return p.shift+p.width > 8*p.size()
}

var dataExclusions = []exclusion{
	{"text array with a NUL or a quote", textArray},
	{"unnamed value of a signed enum", signedUnnamed},
	{"enumerator beyond 2^31", bigEnumerator},
}

// textArray excludes a char array whose text libbpf prints in another way: it ends
// the text at the NUL, and escapes nothing.
func textArray(p place, data []byte) bool {
	a, ok := p.t.(*btf.Array)
	if !ok {
		return false
	}
	i, ok := btf.UnderlyingType(a.Type).(*btf.Int)
	return ok && i.Size == 1 && bytes.ContainsAny(data, "\x00'\\")
}

// signedUnnamed excludes signed enums without a matching enumerator, after which
// libbpf prints neither a comma nor a newline.
func signedUnnamed(p place, data []byte) bool {
	e, ok := p.t.(*btf.Enum)
	return ok && e.Signed && !named32(e, p.bits(data))
}

func named32(e *btf.Enum, v uint64) bool {
	mask := ones(8 * uint(e.Size))
	return slices.ContainsFunc(e.Values, func(n btf.EnumValue) bool { return n.Value&mask == v })
}

// bigEnumerator excludes enumerators that libbpf never finds, as it compares the
// unsigned value with a signed enumerator.
func bigEnumerator(p place, data []byte) bool {
	e, ok := p.t.(*btf.Enum)
	return ok && e.Size < 8 && !e.Signed && p.bits(data) >= 1<<31 && named32(e, p.bits(data))
}

// sparseExclusions are the exclusions for dumps without zeros.
var sparseExclusions = []exclusion{
	{"nested structure that begins with zero", vanishes},
	{"array with gaps", gaps},
	{"bitfield of an enum", enumBitfield},
}

// vanishes excludes values that libbpf drops because the part that it checks is zero.
func vanishes(p place, data []byte) bool {
	return p.nested && !p.array && p.zeroToLibbpf(data) != p.zero(data)
}

// gaps excludes zero elements. libbpf prints every zero element of an array that is
// not zero. This package prints only the other elements, with an index.
func gaps(p place, data []byte) bool {
	return p.array && p.zero(data)
}

// enumBitfield excludes bitfields of enums, as libbpf reads the whole enum to find
// out whether the bitfield is zero.
func enumBitfield(p place, _ []byte) bool {
	_, ok := p.t.(*btf.Enum)
	return ok && p.width != 0
}

// excluded returns the name of the first exclusion that applies to a value or to a
// value inside it, or "".
func excluded(p place, data []byte, list []exclusion) string {
	for _, e := range list {
		if e.applies(p, data) {
			return e.name
		}
	}
	if a, ok := p.t.(*btf.Array); ok && p.nested && !p.array && a.Nelems > 0 && p.zero(data) {
		// Both leave out an array of zeros.
		list = slices.DeleteFunc(slices.Clone(list), func(e exclusion) bool { return e.name == "array with gaps" })
	}
	for _, in := range p.inside() {
		if why := excluded(in, data, list); why != "" {
			return why
		}
	}
	return ""
}

// fillNamed sets the enums in data to values that have a name.
func fillNamed(p place, data []byte, pick func(n int) int) {
	e, ok := p.t.(*btf.Enum)
	if ok && p.width == 0 && len(e.Values) > 0 {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], e.Values[pick(len(e.Values))].Value)
		copy(data[p.off:p.off+int(e.Size)], b[:])
	}
	for _, in := range p.inside() {
		fillNamed(in, data, pick)
	}
}
