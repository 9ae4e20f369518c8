package btfdump

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/cilium/ebpf/btf"
)

// image rebuilds the bytes of a value from a dump. It uses only the BTF and shares
// no code with the code under test.
type image struct {
	data  []byte
	known []byte // mask of the bits that the dump has
}

func newImage(size int) *image { return &image{make([]byte, size), make([]byte, size)} }

// spot is the place of a value in bits. width is 0 unless it is a bitfield.
type spot struct{ off, width int }

func (p spot) add(bytes int) spot { return spot{off: p.off + 8*bytes} }

// member returns the place of a member of the structure at p.
func (p spot) member(m btf.Member) spot {
	return spot{p.off + int(m.Offset), int(m.BitfieldSize)}
}

// set stores the bits of a number. It returns an error if another member of a union
// has stored other bits.
func (im *image) set(p spot, t btf.Type, v *big.Int) error {
	width := p.bits(t)
	if v.Sign() < 0 {
		v = new(big.Int).Add(v, new(big.Int).Lsh(big.NewInt(1), uint(width)))
	}
	if v.Sign() < 0 || v.BitLen() > width {
		return fmt.Errorf("%v does not fit %d bits", v, width)
	}
	if p.off%8 == 0 && width%8 == 0 {
		b := v.FillBytes(make([]byte, width/8))
		for i := range b {
			if err := im.bits(p.off/8+i, b[len(b)-1-i], 0xff); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range width {
		at := p.off + i
		if err := im.bits(at/8, byte(v.Bit(i))<<(at%8), 1<<(at%8)); err != nil {
			return err
		}
	}
	return nil
}

func (im *image) bits(at int, b, mask byte) error {
	if both := im.known[at] & mask; (im.data[at]^b)&both != 0 {
		return fmt.Errorf("the dump gives byte %d as %02x and as %02x", at, im.data[at], b)
	}
	im.data[at] |= b
	im.known[at] |= mask
	return nil
}

// bytes stores bytes one by one.
func (im *image) bytes(p spot, b []byte) error {
	for i, c := range b {
		if err := im.bits(p.off/8+i, c, 0xff); err != nil {
			return err
		}
	}
	return nil
}

func (p spot) bits(t btf.Type) int {
	if p.width != 0 {
		return p.width
	}
	return 8 * sizeof(t)
}

func sizeof(t btf.Type) int {
	n, err := btf.Sizeof(t)
	if err != nil {
		return 0
	}
	return n
}

// leaves sets known to all bits of a type that are not padding and whose numbers are
// inside the image.
func (im *image) leaves(p spot, t btf.Type) {
	switch t := btf.UnderlyingType(t).(type) {
	case *btf.Array:
		for i := range int(t.Nelems) {
			im.leaves(p.add(i*sizeof(t.Type)), t.Type)
		}
	case *btf.Struct, *btf.Union:
		for _, m := range membersOf(t) {
			im.leaves(p.member(m), m.Type)
		}
	default:
		if p.off+p.bits(t) > 8*len(im.known) {
			return
		}
		for i := range p.bits(t) {
			im.known[(p.off+i)/8] |= 1 << ((p.off + i) % 8)
		}
	}
}

func membersOf(t btf.Type) []btf.Member {
	switch t := t.(type) {
	case *btf.Struct:
		return t.Members
	case *btf.Union:
		return t.Members
	}
	return nil
}

// anonymous reports whether m is an anonymous structure, whose members are reached
// without its name.
func anonymous(m btf.Member) bool {
	return m.Name == "" && isStructure(btf.UnderlyingType(m.Type))
}

func isStructure(t btf.Type) bool {
	switch t.(type) {
	case *btf.Struct, *btf.Union:
		return true
	}
	return false
}

// memberNamed returns the member called name of a structure or of the anonymous structures
// in it.
func memberNamed(t btf.Type, p spot, name string) (btf.Member, spot, bool) {
	for _, m := range membersOf(t) {
		if anonymous(m) {
			if m, at, ok := memberNamed(btf.UnderlyingType(m.Type), p.member(m), name); ok {
				return m, at, true
			}
		} else if m.Name == name {
			return m, p.member(m), true
		}
	}
	return btf.Member{}, spot{}, false
}

// arrayOfBytes returns the element type of an array if that is a 1-byte int.
func arrayOfBytes(a *btf.Array) (*btf.Int, bool) {
	i, ok := btf.UnderlyingType(a.Type).(*btf.Int)
	return i, ok && i.Size == 1
}

// scalarBits returns the number that a word in the text means.
func scalarBits(t btf.Type, p spot, word string) (*big.Int, error) {
	if e, ok := btf.UnderlyingType(t).(*btf.Enum); ok {
		for _, v := range e.Values {
			if v.Name == word {
				width := uint(min(p.bits(t), 64))
				return new(big.Int).SetUint64(v.Value & ones(width)), nil
			}
		}
	}
	word, _, _ = strings.Cut(word, " <")
	for len(word) > 1 && (word[len(word)-1] == 'L' || word[len(word)-1] == 'U') {
		word = word[:len(word)-1]
	}
	v, ok := new(big.Int).SetString(word, 0)
	if !ok {
		return nil, fmt.Errorf("%q is no number", word)
	}
	return v, nil
}
