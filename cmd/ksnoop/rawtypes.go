package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
)

// The limits for the types of a file. Those of a Debian kernel take 6 MB, with
// names of 3 MB if each counts as often as it is used, and lie 220 deep; a tag
// of functions is there 200 times.
const (
	maxTypes     = 32 << 20 // bytes
	maxNames     = 64 << 20 // bytes
	maxTypeDepth = 20_000
	maxNamesakes = 2000
)

var errCutTypes = errors.New("it ends too early")

// rawTypes is BTF as it is in a file (Documentation/bpf/btf.rst). It is looked
// at before package btf reads it: that follows references by recursion and
// copies each name, and a made-up file of a few megabytes would take all memory
// and the whole stack, which ends the process. To find a type it looks at all of
// the same name, to which what follows "___" does not belong.
type rawTypes struct {
	order   binary.ByteOrder
	types   []byte
	strings []byte
	offsets []uint32 // of each type, by its number less 1
	tags    map[uint32][]uint32
	names   int // bytes of all names so far

	seed      maphash.Seed
	namesakes map[uint64]int // types by the hash of their name
}

// shape is what follows the three words that each type begins with.
type shape struct {
	ref   bool  // the third word is a type
	fixed int   // bytes
	each  int   // bytes of an element, as many of which follow as the type says
	refs  []int // where types are in an element, or in the fixed bytes, in the order in which they are read
	named bool  // elements begin with a name
}

const kindDeclTag = 17

var shapes = []shape{
	1:           {fixed: 4},
	2:           {ref: true},
	3:           {fixed: 12, refs: []int{4, 0}},
	4:           {each: 12, refs: []int{4}, named: true},
	5:           {each: 12, refs: []int{4}, named: true},
	6:           {each: 8, named: true},
	7:           {},
	8:           {ref: true},
	9:           {ref: true},
	10:          {ref: true},
	11:          {ref: true},
	12:          {ref: true},
	13:          {ref: true, each: 8, refs: []int{4}, named: true},
	14:          {ref: true, fixed: 4},
	15:          {each: 12, refs: []int{0}},
	16:          {},
	kindDeclTag: {ref: true, fixed: 4},
	18:          {ref: true},
	19:          {each: 12, named: true},
}

// checkTypes refuses BTF that takes too much to read.
func checkTypes(raw []byte) error {
	r, err := readRawTypes(raw)
	if err != nil {
		return err
	}
	for at := 0; at < len(r.types); {
		id := len(r.offsets) + 1
		size, err := r.add(at)
		if err != nil {
			return fmt.Errorf("type #%d: %w", id, err)
		}
		at += size
	}
	return r.checkDepth()
}

// readRawTypes finds the types and the strings.
func readRawTypes(raw []byte) (*rawTypes, error) {
	r := &rawTypes{order: binary.LittleEndian, tags: map[uint32][]uint32{}, seed: maphash.MakeSeed(), namesakes: map[uint64]int{}}
	if bytes.HasPrefix(raw, []byte{0xeb, 0x9f}) {
		r.order = binary.BigEndian
	}
	if len(raw) < 24 || r.order.Uint16(raw) != 0xeb9f {
		return nil, errors.New("it is neither BTF nor ELF")
	}
	word := func(at int) uint64 { return uint64(r.order.Uint32(raw[at:])) }
	header := word(4)
	part := func(at int) ([]byte, error) {
		from := header + word(at)
		if to := from + word(at+4); to <= uint64(len(raw)) {
			return raw[from:to], nil
		}
		return nil, errCutTypes
	}
	var err error
	if r.types, err = part(8); err != nil {
		return nil, err
	}
	r.strings, err = part(16)
	return r, err
}

func (r *rawTypes) word(at int) uint32 { return r.order.Uint32(r.types[at:]) }

// shape is that of the type at an offset, and how many elements it has.
func (r *rawTypes) shape(at int) (s shape, elements int) {
	info := r.word(at + 4)
	if kind := int(info >> 24 & 0x1f); kind > 0 && kind < len(shapes) {
		s = shapes[kind]
	}
	if s.each > 0 {
		elements = int(info & 0xffff)
	}
	return s, elements
}

// add notes the type at an offset and returns its size.
func (r *rawTypes) add(at int) (size int, err error) {
	if len(r.types)-at < 12 {
		return 0, errCutTypes
	}
	kind := r.word(at+4) >> 24 & 0x1f
	if kind == 0 || int(kind) >= len(shapes) {
		return 0, fmt.Errorf("there is no kind %d", kind)
	}
	s, n := r.shape(at)
	size = 12 + s.fixed + n*s.each
	if len(r.types)-at < size {
		return 0, errCutTypes
	}
	r.offsets = append(r.offsets, uint32(at))
	if kind == kindDeclTag {
		of := r.word(at + 8)
		r.tags[of] = append(r.tags[of], uint32(len(r.offsets)))
	}
	name, err := r.name(r.word(at))
	if err == nil && len(name) > 0 {
		err = r.countNamesake(name)
	}
	for i := 0; i < n && s.named && err == nil; i++ {
		_, err = r.name(r.word(at + 12 + i*s.each))
	}
	return size, err
}

// name finds a name, and counts its bytes.
func (r *rawTypes) name(at uint32) ([]byte, error) {
	if at == 0 {
		return nil, nil
	}
	if uint64(at) >= uint64(len(r.strings)) {
		return nil, fmt.Errorf("its name is at %d of %d", at, len(r.strings))
	}
	n := bytes.IndexByte(r.strings[at:], 0)
	if n < 0 {
		return nil, errors.New("its name does not end")
	}
	if r.names += n; r.names > maxNames {
		return nil, fmt.Errorf("the names have more than %d MB", maxNames>>20)
	}
	return r.strings[at:][:n], nil
}

// countNamesake counts the types of a name.
func (r *rawTypes) countNamesake(name []byte) error {
	if i := bytes.LastIndex(name, []byte("___")); i >= 0 {
		name = name[:i]
	}
	hash := maphash.Bytes(r.seed, name)
	if r.namesakes[hash]++; r.namesakes[hash] > maxNamesakes {
		return fmt.Errorf("more than %d types are called %.60q", maxNamesakes, name)
	}
	return nil
}

// child is the i-th type that a type needs, in the order in which package btf
// reads them; 0: there are no more.
func (r *rawTypes) child(id uint32, i int) (child uint32, ok bool) {
	at := int(r.offsets[id-1])
	s, n := r.shape(at)
	if s.each == 0 && len(s.refs) > 0 {
		n = 1
	}
	refs := n * len(s.refs)
	if i < refs {
		return r.word(at + 12 + i/len(s.refs)*s.each + s.refs[i%len(s.refs)]), true
	}
	i -= refs
	if s.ref {
		if i == 0 {
			return r.word(at + 8), true
		}
		i--
	}
	if tags := r.tags[id]; i < len(tags) {
		return tags[i], true
	}
	return 0, false
}

// checkDepth reads all types as package btf does, from the first to the last,
// to see how deep it goes.
func (r *rawTypes) checkDepth() error {
	type visit struct {
		id   uint32
		next int // its next child
	}
	seen := make([]bool, len(r.offsets)+1)
	seen[0] = true // void
	var open []visit
	for id := range seen {
		if seen[id] {
			continue
		}
		seen[id] = true
		open = append(open, visit{id: uint32(id)})
		for len(open) > 0 {
			top := &open[len(open)-1]
			child, ok := r.child(top.id, top.next)
			top.next++
			switch {
			case !ok:
				open = open[:len(open)-1]
			case uint64(child) >= uint64(len(seen)):
				return fmt.Errorf("type #%d: there is no type #%d", top.id, child)
			case !seen[child]:
				seen[child] = true
				open = append(open, visit{id: child})
			}
			if len(open) > maxTypeDepth {
				return fmt.Errorf("type #%d: more than %d types need each other", id, maxTypeDepth)
			}
		}
	}
	return nil
}
