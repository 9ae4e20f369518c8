package listing

import (
	"fmt"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// structure is the layout of a struct or union.
type structure struct {
	Members []member `json:"members"`
	Holes   []hole   `json:"holes,omitempty"`
	// Padding is the number of unused bytes at the end.
	Padding int `json:"padding,omitempty"`
}

// member is a member of a structure. Those without a name are transparent in C.
type member struct {
	Name   btfdump.JSONString `json:"name"`
	Type   btfdump.JSONString `json:"type"`
	Offset int                `json:"offset"`         // in bytes, from the beginning of the outermost structure
	Size   int                `json:"size"`           // of its type, in bytes
	Bit    int                `json:"bit,omitempty"`  // of a bitfield: its first bit in the byte at Offset
	Bits   int                `json:"bits,omitempty"` // of a bitfield: its width
	// The layout of the member's type, or its enumerators, if the type has no name by
	// which it could be looked up.
	*structure
	Values []enumerator `json:"values,omitempty"`

	typ btf.Type
}

// hole is a range of bits between members that belong to none.
type hole struct {
	Offset int `json:"offset"`
	Bit    int `json:"bit,omitempty"`
	Bits   int `json:"bits"`
}

type enumerator struct {
	Name  btfdump.JSONString `json:"name"`
	Value any                `json:"value,omitempty"` // int64 or uint64, or nil if BTF has only a half of it
}

// Limits of a layout, for types that contain themselves, as only invalid BTF can, and
// for sizes that no memory has.
const (
	mostNested  = 32
	mostMembers = 10_000
	mostBytes   = 1 << 40
)

// layouter computes one layout.
type layouter struct{ left int } // members and enumerators that may still come

// layoutOf returns the layout of a struct or union, or nil if t is something else. It
// returns an error if the layout has too many members.
func layoutOf(t btf.Type) (*structure, error) {
	l := layouter{left: mostMembers}
	r := l.structure(t, 0, 0)
	if l.left < 0 {
		return nil, fmt.Errorf("%s has more than %d members with those inside", render.PlainName(btfdump.TypeName(t)), mostMembers)
	}
	return r, nil
}

// structure returns the layout of a structure at a bit offset.
func (l *layouter) structure(t btf.Type, base, depth int) *structure {
	members, size, ok := membersOf(t)
	l.left -= len(members)
	if !ok || l.left < 0 || depth > mostNested {
		return nil
	}
	r := &structure{Members: []member{}}
	end := base
	for _, m := range members {
		one := member{
			Name: btfdump.JSONString(m.Name), Type: btfdump.JSONString(btfdump.Decl(m.Type, "")), Size: sizeOf(m.Type),
			Bits: int(m.BitfieldSize), typ: m.Type,
		}
		at, width := base+int(m.Offset), 8*one.Size
		one.Offset = at / 8
		if one.Bits != 0 {
			one.Bit, width = at%8, one.Bits
		}
		if at > end {
			r.Holes = append(r.Holes, hole{end / 8, end % 8, at - end})
		}
		end = max(end, at+width)
		if inner := unnamed(m.Type); inner != nil {
			one.structure, one.Values = l.structure(inner, at, depth+1), enumerators(inner)
			l.left -= len(one.Values)
		}
		r.Members = append(r.Members, one)
	}
	if rest := base + 8*size - end; rest > 0 && len(members) > 0 {
		if rest%8 != 0 {
			r.Holes = append(r.Holes, hole{end / 8, end % 8, rest % 8})
		}
		r.Padding = rest / 8
	}
	return r
}

// sizeOf returns the size of a type in bytes, or 0 if it has none.
func sizeOf(t btf.Type) int {
	size, err := btf.Sizeof(t)
	if err != nil {
		return 0
	}
	return min(size, mostBytes)
}

func membersOf(t btf.Type) (members []btf.Member, size int, ok bool) {
	switch t := t.(type) {
	case *btf.Struct:
		return t.Members, int(t.Size), true
	case *btf.Union:
		return t.Members, int(t.Size), true
	}
	return nil, 0, false
}

// unnamed returns the struct, union or enum without a name that a member is, points
// to or is an array of, or nil.
func unnamed(t btf.Type) btf.Type {
	for range mostNested {
		switch v := btfdump.Unqualified(t).(type) {
		case *btf.Array:
			t = v.Type
		case *btf.Pointer:
			t = v.Target
		case *btf.Struct, *btf.Union, *btf.Enum:
			if v.TypeName() == "" {
				return v
			}
			return nil
		default:
			return nil
		}
	}
	return nil
}

// enumerators returns the values of an enum, or nil if t is something else.
func enumerators(t btf.Type) []enumerator {
	e, ok := t.(*btf.Enum)
	if !ok {
		return nil
	}
	all := []enumerator{}
	for _, v := range e.Values {
		one := enumerator{Name: btfdump.JSONString(v.Name), Value: v.Value}
		switch {
		case resolve.Halved(e):
			one.Value = nil
		case e.Signed:
			one.Value = int64(v.Value)
		}
		all = append(all, one)
	}
	return all
}
