package main

import (
	"bytes"
	"strings"
)

// Kinds of types in BTF (include/uapi/linux/btf.h).
const (
	kindInt       = 1
	kindPointer   = 2
	kindArray     = 3
	kindStruct    = 4
	kindUnion     = 5
	kindEnum      = 6
	kindForward   = 7
	kindTypedef   = 8
	kindVolatile  = 9
	kindConst     = 10
	kindRestrict  = 11
	kindFunc      = 12
	kindFuncProto = 13
	kindVar       = 14
	kindFloat     = 16
	kindTypeTag   = 18
	kindEnum64    = 19
)

// names is BTF of which only a few types are looked at, as completion has no time to
// read it all: names are compared where they lie, and a type is decoded when a
// word leads to it. Nothing in the file is trusted.
type names struct {
	raw     *rawTypes
	base    *names // the kernel's, of a module; nil: there is none
	decoded int    // types whose parts were read
}

// field is a parameter, a member or an enumerator.
type field struct {
	name string
	typ  uint32
}

// newNames finds where each type is.
func newNames(raw []byte, base *names) (*names, error) {
	r, err := readRawTypes(raw)
	if err != nil {
		return nil, err
	}
	n := &names{raw: r, base: base}
	n.findTypes()
	return n, nil
}

// findTypes finds where each type is, up to the first that is not whole.
func (n *names) findTypes() {
	r := n.raw
	r.offsets = make([]uint32, 0, len(r.types)/24)
	for at := 0; at+12 <= len(r.types); {
		s, elements := r.shape(at)
		size := 12 + s.fixed + elements*s.each
		if size > len(r.types)-at {
			return
		}
		r.offsets = append(r.offsets, uint32(at))
		at += size
	}
}

// firstType is the number of the first type, and firstName where the first name
// is: those of a module follow those of the kernel.
func (n *names) firstType() uint32 {
	if n.base == nil {
		return 1
	}
	return n.base.firstType() + uint32(len(n.base.raw.offsets))
}

func (n *names) firstName() uint32 {
	if n.base == nil {
		return 0
	}
	return n.base.firstName() + uint32(len(n.base.raw.strings))
}

// text is what begins at a place of the names, up to the last of them.
func (n *names) text(at uint32) []byte {
	first := n.firstName()
	if at < first {
		return n.base.text(at)
	}
	if at -= first; at >= uint32(len(n.raw.strings)) {
		return nil
	}
	return n.raw.strings[at:]
}

func (n *names) name(at uint32) string {
	text := n.text(at)
	if i := bytes.IndexByte(text, 0); i >= 0 {
		return string(text[:i])
	}
	return ""
}

// at is the BTF that a type is in and where; nil: there is no such type.
func (n *names) at(id uint32) (*names, int) {
	first := n.firstType()
	if id < first && n.base != nil {
		return n.base.at(id)
	}
	if id < first || id-first >= uint32(len(n.raw.offsets)) {
		return nil, 0
	}
	return n, int(n.raw.offsets[id-first])
}

// kind is the kind of a type, 0 of none.
func (n *names) kind(id uint32) int {
	in, at := n.at(id)
	if in == nil {
		return 0
	}
	return int(in.raw.word(at+4) >> 24 & 0x1f)
}

// ref is the type that a pointer, a typedef or a function has.
func (n *names) ref(id uint32) uint32 {
	in, at := n.at(id)
	if in == nil {
		return 0
	}
	return in.raw.word(at + 8)
}

func (n *names) nameOf(id uint32) string {
	in, at := n.at(id)
	if in == nil {
		return ""
	}
	return in.name(in.raw.word(at))
}

// of is each type of a kind whose name begins with a prefix, without those of
// the base.
func (n *names) of(prefix string, yield func(name string, id uint32), kinds ...int) {
	var want uint32
	for _, k := range kinds {
		want |= 1 << k
	}
	first := n.firstType()
	for i, at := range n.raw.offsets {
		if want>>(n.raw.word(int(at)+4)>>24&0x1f)&1 == 0 {
			continue
		}
		text := n.text(n.raw.word(int(at)))
		if len(text) < len(prefix) || string(text[:len(prefix)]) != prefix {
			continue
		}
		if end := bytes.IndexByte(text, 0); end > 0 {
			yield(string(text[:end]), first+uint32(i))
		}
	}
}

// find is the first type of a name, of a module before those of the kernel; 0:
// there is none.
func (n *names) find(name string, kinds ...int) (found uint32) {
	n.of(name, func(have string, id uint32) {
		if have == name && found == 0 {
			found = id
		}
	}, kinds...)
	if found == 0 && n.base != nil {
		return n.base.find(name, kinds...)
	}
	return found
}

// fields are the parameters of a prototype, the members of a record or the
// enumerators of an enum.
func (n *names) fields(id uint32) []field {
	in, at := n.at(id)
	if in == nil {
		return nil
	}
	s, elements := in.raw.shape(at)
	if !s.named {
		return nil
	}
	n.decoded++
	fields := make([]field, 0, elements)
	for i := range elements {
		where := at + 12 + i*s.each
		fields = append(fields, field{in.name(in.raw.word(where)), in.raw.word(where + 4)})
	}
	return fields
}

// deepest is how many types that refer to each other are followed.
const deepest = 32

// bare is a type without typedefs and qualifiers.
func (n *names) bare(id uint32) uint32 {
	for range deepest {
		switch n.kind(id) {
		case kindTypedef, kindVolatile, kindConst, kindRestrict, kindTypeTag:
			id = n.ref(id)
		default:
			return id
		}
	}
	return 0
}

// element is the type of an array's elements.
func (n *names) element(id uint32) uint32 {
	in, at := n.at(id)
	if in == nil || n.kind(id) != kindArray {
		return 0
	}
	return in.raw.word(at + 12)
}

// members are those of a record, with those of anonymous records in it.
func (n *names) members(id uint32) []field {
	var all []field
	records := []uint32{id} // it grows by anonymous ones
	for i := 0; i < len(records) && i < mostRecords; i++ {
		id := n.bare(records[i])
		if k := n.kind(id); k != kindStruct && k != kindUnion {
			continue
		}
		for _, f := range n.fields(id) {
			if f.name != "" {
				all = append(all, f)
			} else {
				records = append(records, f.typ)
			}
		}
	}
	return all
}

// mostRecords bounds what a made-up record has, which may have itself as a member.
const mostRecords = 200

// typeName is a type as in C, for people to read.
func (n *names) typeName(id uint32) string {
	stars, after := "", ""
	for range deepest {
		name := n.nameOf(id)
		switch n.kind(id) {
		case 0:
			return strings.TrimSpace("void "+stars) + after
		case kindPointer:
			stars = "*" + stars
			id = n.ref(id)
			continue
		case kindArray:
			after = "[]"
			id = n.element(id)
			continue
		case kindVolatile, kindConst, kindRestrict, kindTypeTag:
			id = n.ref(id)
			continue
		case kindStruct, kindForward:
			name = strings.TrimSpace("struct " + name)
		case kindUnion:
			name = strings.TrimSpace("union " + name)
		case kindEnum, kindEnum64:
			name = strings.TrimSpace("enum " + name)
		case kindFuncProto:
			name = "function"
		}
		return strings.TrimSpace(name+" "+stars) + after
	}
	return ""
}
