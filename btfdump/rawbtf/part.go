package rawbtf

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/cilium/ebpf/btf"
)

// Want selects the types of a part.
type Want struct {
	// Names lists the names of functions, variables, structures, enums, numbers and typedefs.
	// The part has all types with these names and the types that they consist
	// of. The types that parameters of functions point to are included.
	Names []string
	// Members lists the names of members. If such a member is a pointer, the
	// type that it points to is included.
	Members []string
	// Enumerators lists the names of enumerators. The part has all enums with one of
	// them.
	Enumerators []string
}

// Part is a part of the types of a kernel. A structure of which only the name is
// needed is a forward declaration in it.
type Part struct {
	Types *btf.Spec
	ids   []uint32 // in the whole BTF, by ID in the part
}

// ID returns the ID in the whole BTF of a type in the part, or 0 if the part has no
// such type.
func (p *Part) ID(id btf.TypeID) btf.TypeID {
	if int(id) >= len(p.ids) {
		return 0
	}
	return btf.TypeID(p.ids[id])
}

// lookedUp is the set of kinds that are looked up by name.
const lookedUp = 1<<Int | 1<<Struct | 1<<Union | 1<<Enum | 1<<Typedef | 1<<Func | 1<<Var | 1<<Float | 1<<Enum64

// Take copies a part of raw BTF. The result does not refer to raw. It returns the errors
// that [Index] returns for raw, and others if a type of the part refers to one that does not
// exist, or if package btf cannot read the part. A name that raw does not have is not an error.
func Take(raw []byte, want Want) (*Part, error) {
	w, err := parse(raw)
	if err != nil {
		return nil, err
	}
	found := w.find(slices.Concat(want.Names, signTypes), want.Members, want.Enumerators)
	names, members, enumerators := found[0], found[1], found[2]
	if len(want.Enumerators) == 0 {
		enumerators = nil
	}
	roots, err := w.index(names, enumerators)
	if err != nil {
		return nil, err
	}
	wk := walk{wire: w, levels: make([]level, len(w.offsets)), members: members}
	if err := wk.from(roots); err != nil {
		return nil, err
	}
	c := &cutter{wire: w, levels: wk.levels, ids: []uint32{0}, newIDs: map[uint32]uint32{0: 0}, newNames: map[uint32]uint32{0: 0}, names: []byte{0}}
	types, err := btf.LoadSplitSpecFromReader(bytes.NewReader(c.cut()), nil)
	if err != nil {
		return nil, lineError{err}
	}
	CorrectSigns(types)
	return &Part{types, c.ids}, nil
}

// offsetSet is a set of offsets in the strings.
type offsetSet []uint64

func (s offsetSet) has(at uint32) bool { return int(at/64) < len(s) && s[at/64]>>(at%64)&1 != 0 }

// find returns the offsets of the strings in each list. A string may occur several
// times.
func (w *wire) find(lists ...[]string) (found []offsetSet) {
	wanted := map[string][]offsetSet{}
	var hashes [hashSize]bool // of the wanted strings: looking up each string in the map would be too slow
	for _, names := range lists {
		in := make(offsetSet, len(w.strings)/64+1)
		for _, name := range names {
			if name != "" {
				wanted[name] = append(wanted[name], in)
				_, h := nextString(append([]byte(name), 0))
				hashes[h] = true
			}
		}
		found = append(found, in)
	}
	for at := 0; at < len(w.strings); {
		n, h := nextString(w.strings[at:])
		if hashes[h] {
			for _, set := range wanted[string(w.strings[at:at+n])] {
				set[at/64] |= 1 << (at % 64)
			}
		}
		at += n + 1
	}
	return found
}

const hashSize = 4096

// nextString returns the length of the string that b begins with, and a hash of its
// length and its first seven bytes. A kernel has a hundred thousand strings, most of them
// so short that calling bytes.IndexByte for each would take twice as long.
func nextString(b []byte) (n int, hash uint64) {
	var first uint64
	for ; n+8 <= len(b); n += 8 {
		word := binary.LittleEndian.Uint64(b[n:])
		// The lowest bit that is set here is in the first byte that is zero.
		zeros := (word - 0x0101010101010101) &^ word & 0x8080808080808080
		if n == 0 {
			first = word & (zeros ^ (zeros - 1)) // with all bits set if there is none
		}
		if zeros != 0 {
			return hashed(n+bits.TrailingZeros64(zeros)/8, first)
		}
	}
	if n == 0 {
		var short [8]byte
		copy(short[:], b[:bytes.IndexByte(b, 0)])
		first = binary.LittleEndian.Uint64(short[:])
	}
	return hashed(n+bytes.IndexByte(b[n:], 0), first)
}

func hashed(n int, first uint64) (int, uint64) {
	return n, (first<<8 ^ uint64(n)) * 0x9e3779b97f4a7c15 >> 52
}
