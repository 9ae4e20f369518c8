package btfpart

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// A type's header is three words: its name, its kind with the number of things
// behind the header, and its size or the type that it refers to.
const (
	typeHeader = 12
	fileHeader = 24
	magic      = 0xeb9f
)

// The kinds of types (include/uapi/linux/btf.h).
const (
	kindInt = iota + 1
	kindPtr
	kindArray
	kindStruct
	kindUnion
	kindEnum
	kindFwd
	kindTypedef
	kindVolatile
	kindConst
	kindRestrict
	kindFunc
	kindFuncProto
	kindVar
	kindDatasec
	kindFloat
	kindDeclTag
	kindTypeTag
	kindEnum64
)

// behind is how many bytes are behind the header of a type: so many, and so many
// for each of its parts.
var behind = [...]struct{ fixed, each uint32 }{
	kindInt: {4, 0}, kindArray: {12, 0}, kindStruct: {0, 12}, kindUnion: {0, 12}, kindEnum: {0, 8}, kindFuncProto: {0, 8},
	kindVar: {4, 0}, kindDatasec: {0, 12}, kindDeclTag: {4, 0}, kindEnum64: {0, 12},
}

// named are the kinds that are looked up by their names.
const named = 1<<kindInt | 1<<kindStruct | 1<<kindUnion | 1<<kindEnum | 1<<kindTypedef | 1<<kindFunc | 1<<kindFloat | 1<<kindEnum64

// blob is raw BTF.
type blob struct {
	types, strings []byte
	offsets        []uint32 // of the types, by id; that of void, 0, says nothing
}

var errBroken = errors.New("the BTF is broken")

func parse(raw []byte) (*blob, error) {
	if len(raw) < fileHeader || binary.LittleEndian.Uint16(raw) != magic {
		return nil, errors.New("there is no little-endian BTF")
	}
	header := uint64(word(raw, 4))
	part := func(at uint32) ([]byte, bool) {
		from := header + uint64(word(raw, at))
		to := from + uint64(word(raw, at+4))
		if to > uint64(len(raw)) {
			return nil, false
		}
		return raw[from:to], true
	}
	types, ok := part(8)
	strings, ok2 := part(16)
	if !ok || !ok2 || len(strings) > 0 && strings[len(strings)-1] != 0 {
		return nil, errBroken
	}
	return &blob{types: types, strings: strings}, nil
}

func word(b []byte, at uint32) uint32 { return binary.LittleEndian.Uint32(b[at:]) }

// kind takes the second word of a type apart.
func kind(info uint32) (kind, parts uint32) { return info >> 24 & 0x1f, info & 0xffff }

// index finds where each type is, and the ids of those with one of the names.
func (b *blob) index(names offsetSet) (roots []uint32, err error) {
	b.offsets = append(make([]uint32, 0, len(b.types)/24), 0)
	for at := uint32(0); at < uint32(len(b.types)); {
		rest := b.types[at:]
		if len(rest) < typeHeader {
			return nil, errBroken
		}
		k, parts := kind(word(rest, 4))
		if k == 0 || k > kindEnum64 {
			return nil, fmt.Errorf("the BTF has a type of the unknown kind %d", k)
		}
		if named>>k&1 != 0 && names.has(word(rest, 0)) {
			roots = append(roots, uint32(len(b.offsets)))
		}
		size := uint32(typeHeader)
		if int(k) < len(behind) {
			size += behind[k].fixed + parts*behind[k].each
		}
		if size > uint32(len(rest)) {
			return nil, errBroken
		}
		b.offsets = append(b.offsets, at)
		at += size
	}
	return roots, nil
}

// offsetSet is a set of places in the strings.
type offsetSet []uint64

func (s offsetSet) has(at uint32) bool { return int(at/64) < len(s) && s[at/64]>>(at%64)&1 != 0 }

// find finds two lists of strings, each of which may be there several times.
func (b *blob) find(first, second []string) (one, two offsetSet) {
	one, two = make(offsetSet, len(b.strings)/64+1), make(offsetSet, len(b.strings)/64+1)
	wanted := map[string][]offsetSet{}
	var hashes [1024]bool // of the wanted: to look each string up would take longer than all the rest
	want := func(names []string, in offsetSet) {
		for _, name := range names {
			if name != "" {
				wanted[name] = append(wanted[name], in)
				hashes[hash(name)] = true
			}
		}
	}
	want(first, one)
	want(second, two)
	for at := 0; at < len(b.strings); {
		n := bytes.IndexByte(b.strings[at:], 0)
		if s := b.strings[at : at+n]; n > 0 && hashes[hash(s)] {
			for _, set := range wanted[string(s)] {
				set[at/64] |= 1 << (at % 64)
			}
		}
		at += n + 1
	}
	return one, two
}

func hash[S string | []byte](s S) uint {
	n := uint(len(s))
	return (n<<6 ^ uint(s[0])<<3 ^ uint(s[n-1]) ^ uint(s[n/2])<<5) % 1024
}
