package rawbtf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// Kind is the kind of a type (include/uapi/linux/btf.h). Void, which is not in
// any file, has kind 0.
type Kind uint32

const (
	Int Kind = iota + 1
	Pointer
	Array
	Struct
	Union
	Enum
	Forward
	Typedef
	Volatile
	Const
	Restrict
	Func
	FuncProto
	Var
	Datasec
	Float
	DeclTag
	TypeTag
	Enum64
)

// The header of a file begins with the magic number. The header of a type has
// three words: its name, its kind with the number of its elements, and its size
// or the type that it refers to.
const (
	magic      = 0xeb9f
	fileHeader = 24
	typeHeader = 12
)

// layout describes what follows the header of a type.
type layout struct {
	ref   bool     // the third word of the header is a type
	fixed uint32   // bytes between the header and the elements
	each  uint32   // bytes of an element
	named bool     // elements begin with a name
	refs  []uint32 // offsets of type IDs in an element, or in the fixed bytes, in the order in which package btf reads them
}

var layouts = [Enum64 + 1]layout{
	Int:       {fixed: 4},
	Pointer:   {ref: true},
	Array:     {fixed: 12, refs: []uint32{4, 0}},
	Struct:    {each: 12, refs: []uint32{4}, named: true},
	Union:     {each: 12, refs: []uint32{4}, named: true},
	Enum:      {each: 8, named: true},
	Typedef:   {ref: true},
	Volatile:  {ref: true},
	Const:     {ref: true},
	Restrict:  {ref: true},
	Func:      {ref: true},
	FuncProto: {ref: true, each: 8, refs: []uint32{4}, named: true},
	Var:       {ref: true, fixed: 4},
	Datasec:   {each: 12, refs: []uint32{0}},
	DeclTag:   {ref: true, fixed: 4},
	TypeTag:   {ref: true},
	Enum64:    {each: 12, named: true},
}

// size returns the size in bytes of a type with n elements.
func (l *layout) size(n uint32) uint32 { return typeHeader + l.fixed + n*l.each }

// refCount returns the number of type IDs in the elements, or in the fixed bytes.
func (l *layout) refCount(n uint32) uint32 {
	if l.each == 0 {
		n = 1
	}
	return n * uint32(len(l.refs))
}

// refAt returns the offset in a type of the i-th of these type IDs.
func (l *layout) refAt(i uint32) uint32 {
	n := uint32(len(l.refs))
	return typeHeader + i/n*l.each + l.refs[i%n]
}

// element returns the offset in a type of the i-th element.
func (l *layout) element(i uint32) uint32 { return typeHeader + i*l.each }

// wire is the BTF of one file, in little-endian order.
type wire struct {
	types, strings []byte
	offsets        []uint32 // of the types, by ID; 0 for void
}

var errCut = errors.New("it ends too early")

// parse finds the sections with the types and the strings.
func parse(raw []byte) (*wire, error) {
	big := bytes.HasPrefix(raw, []byte{magic >> 8, magic & 0xff})
	if len(raw) < fileHeader || !big && binary.LittleEndian.Uint16(raw) != magic {
		return nil, errors.New("it is neither BTF nor ELF")
	}
	header := raw[:fileHeader]
	if big {
		header = swapped(header)
	}
	part := func(at uint32) ([]byte, error) {
		from := uint64(word(header, 4)) + uint64(word(header, at))
		to := from + uint64(word(header, at+4))
		if to > uint64(len(raw)) {
			return nil, errCut
		}
		return raw[from:to], nil
	}
	types, err := part(8)
	if err != nil {
		return nil, err
	}
	strings, err := part(16)
	if err != nil {
		return nil, err
	}
	if len(strings) > 0 && strings[len(strings)-1] != 0 {
		return nil, errors.New("its last name does not end")
	}
	if big {
		types = swapped(types)
	}
	return &wire{types: types, strings: strings}, nil
}

// swapped returns a copy of b with the bytes of each 32-bit word in reverse order.
func swapped(b []byte) []byte {
	out := make([]byte, len(b))
	for at := 0; at+4 <= len(b); at += 4 {
		binary.LittleEndian.PutUint32(out[at:], binary.BigEndian.Uint32(b[at:]))
	}
	return out
}

func word(b []byte, at uint32) uint32 { return binary.LittleEndian.Uint32(b[at:]) }

// kindOf returns the kind of the type that begins at t.
func kindOf(t []byte) Kind { return Kind(word(t, 4) >> 24 & 0x1f) }

// shape returns the layout of the type that begins at t and the number of its
// elements. The kind of the type must be valid.
func shape(t []byte) (l *layout, elements uint32) {
	l = &layouts[kindOf(t)]
	if l.each > 0 {
		elements = word(t, 4) & 0xffff
	}
	return l, elements
}

// index finds the offset of each type. It returns the IDs of the types that have
// one of these names and a kind that is looked up by name, and of the enums with one of
// the enumerators. Both may be nil.
func (w *wire) index(names, enumerators *nameSet) (roots []uint32, err error) {
	w.offsets = append(make([]uint32, 0, len(w.types)/24), 0)
	for t := w.types; len(t) > 0; {
		if len(t) < typeHeader {
			return nil, w.errorf("%w", errCut)
		}
		k := kindOf(t)
		if k == 0 || k > Enum64 {
			return nil, w.errorf("there is no kind %d", k)
		}
		size := layouts[k].size(word(t, 4) & 0xffff)
		if size > uint32(len(t)) {
			return nil, w.errorf("%w", errCut)
		}
		if names != nil && lookedUp>>k&1 != 0 && w.has(names, word(t, 0)) || enumerators != nil && w.hasEnumerator(t, enumerators) {
			roots = append(roots, uint32(len(w.offsets)))
		}
		w.offsets = append(w.offsets, uint32(len(w.types)-len(t)))
		t = t[size:]
	}
	return roots, nil
}

// hasEnumerator reports whether the type that begins at t is an enum with one of the
// enumerators. The type must be whole.
func (w *wire) hasEnumerator(t []byte, enumerators *nameSet) bool {
	k := kindOf(t)
	return (k == Enum || k == Enum64) && anyElement(t, func(e []byte) bool { return w.has(enumerators, word(e, 0)) })
}

// anyElement reports whether is holds for an element of the type that begins at t. The
// type must be whole.
func anyElement(t []byte, is func(element []byte) bool) bool {
	l, n := shape(t)
	for i := range n {
		if is(t[l.element(i):]) {
			return true
		}
	}
	return false
}

// errorf returns an error about the type that index reads next.
func (w *wire) errorf(format string, args ...any) error {
	return fmt.Errorf("type #%d: %w", len(w.offsets), fmt.Errorf(format, args...))
}

// at returns the bytes from the type with this ID on. The index must have it.
func (w *wire) at(id uint32) []byte { return w.types[w.offsets[id]:] }

// text returns the name at an offset, or nil if the offset is out of range.
func (w *wire) text(at uint32) []byte {
	if at >= uint32(len(w.strings)) {
		return nil
	}
	text := w.strings[at:]
	return text[:bytes.IndexByte(text, 0)]
}
