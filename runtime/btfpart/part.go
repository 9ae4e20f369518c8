package btfpart

import (
	"bytes"

	"github.com/cilium/ebpf/btf"
)

// Want is what a part must have.
type Want struct {
	// Names of functions, records, enums, numbers and typedefs: all types of
	// these names, and what they are made of. What the parameters of functions
	// point to is part of them.
	Names []string
	// Members are followed if they are pointers.
	Members []string
}

// Part is some of the types of a kernel.
type Part struct {
	Types *btf.Spec
	ids   []uint32 // of the whole, by the id in the part
}

// ID is a type's number in the whole BTF.
func (p *Part) ID(id btf.TypeID) btf.TypeID {
	if int(id) >= len(p.ids) {
		return 0
	}
	return btf.TypeID(p.ids[id])
}

// Take takes a part out of raw BTF, of which it keeps nothing.
func Take(raw []byte, want Want) (*Part, error) {
	b, err := parse(raw)
	if err != nil {
		return nil, err
	}
	names, members := b.find(want.Names, want.Members)
	roots, err := b.index(names)
	if err != nil {
		return nil, err
	}
	w := walk{blob: b, levels: make([]level, len(b.offsets)), members: members}
	if err := w.from(roots); err != nil {
		return nil, err
	}
	c := cutter{blob: b, levels: w.levels, ids: []uint32{0}, newIDs: map[uint32]uint32{0: 0}, newNames: map[uint32]uint32{0: 0}, names: []byte{0}}
	types, err := btf.LoadSplitSpecFromReader(bytes.NewReader(c.cut()), nil)
	if err != nil {
		return nil, err
	}
	return &Part{types, c.ids}, nil
}
