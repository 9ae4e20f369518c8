package rawbtf

import (
	"bytes"
	"encoding/binary"
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
	var enumerators *nameSet
	if len(want.Enumerators) > 0 {
		enumerators = namesOf(want.Enumerators)
	}
	roots, err := w.index(namesOf(slices.Concat(want.Names, signTypes)), enumerators)
	if err != nil {
		return nil, err
	}
	wk := walk{wire: w, levels: make([]level, len(w.offsets)), members: namesOf(want.Members)}
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

// nameSet is a set of names that most others are told from by a hash, as a kernel has
// tens of thousands.
type nameSet struct {
	names  map[string]bool
	hashes [hashSize]bool // of the names
}

const hashSize = 4096

func namesOf(names []string) *nameSet {
	s := &nameSet{names: map[string]bool{}}
	for _, name := range names {
		if name != "" {
			s.names[name] = true
			s.hashes[hash(append([]byte(name), 0))] = true
		}
	}
	return s
}

// has reports whether the name at an offset is in the set.
func (w *wire) has(s *nameSet, at uint32) bool {
	return at < uint32(len(w.strings)) && s.hashes[hash(w.strings[at:])] && s.names[string(w.text(at))]
}

// hash returns a hash of the first eight bytes of the string that b begins with.
func hash(b []byte) uint64 {
	var word uint64
	if len(b) >= 8 {
		word = binary.LittleEndian.Uint64(b)
	} else {
		var short [8]byte
		copy(short[:], b)
		word = binary.LittleEndian.Uint64(short[:])
	}
	// The lowest bit that is set here is in the first byte that is zero.
	zeros := (word - 0x0101010101010101) &^ word & 0x8080808080808080
	return (word & (zeros ^ (zeros - 1))) * 0x9e3779b97f4a7c15 >> 52
}
