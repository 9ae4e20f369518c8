package btfdump

import (
	"bytes"
	"encoding/binary"
	"strconv"

	"github.com/cilium/ebpf/btf"
)

// Change is a part of a value that differs between two states of it.
type Change struct {
	// Member is the place of the part, such as "__sk_common.skc_daddr" or
	// "name[3]", or "" for the value itself. Members of anonymous structures are those
	// of the structure around it. Bytes that belong to no member are "(padding at 12)", by
	// their offset in the structure that is named; they are compared only in a structure
	// without other differences.
	Member string
	// Type is the type of a number, a pointer, an enum or an array of characters, or
	// for padding an array of bytes.
	Type          btf.Type
	Before, After []byte // bytes of Type; those of a bitfield are extended to it
}

// mostChanges bounds the parts of a value that are compared one by one. Broken BTF
// may describe more of them than there are bytes.
const mostChanges = 1 << 16

// Changes returns the parts of a value of type t that differ. Of a union, all
// members are compared, as nothing says which of them is meant. Bytes that one of
// the states lacks are not compared: an array of characters ends there, too.
func Changes(t btf.Type, before, after []byte) []Change {
	n := min(len(before), len(after))
	d := differ{before: before[:n], after: after[:n], budget: mostChanges}
	d.value(t, "", 0, 0, 0)
	return d.changes
}

// differ compares two states of a value.
type differ struct {
	before, after []byte
	changes       []Change
	budget        int
}

// same reports whether size bytes at an offset are the same, or missing.
func (d *differ) same(at, size int) bool {
	at, end := min(max(at, 0), len(d.before)), min(max(at+size, 0), len(d.before))
	return at >= end || bytes.Equal(d.before[at:end], d.after[at:end])
}

// value compares the values at an offset. What has this name begins at named, which is
// before the offset for an anonymous structure.
func (d *differ) value(t btf.Type, name string, named, at, depth int) {
	size, err := btf.Sizeof(t)
	d.budget--
	if err != nil || d.budget < 0 || depth > maxNested || d.same(at, size) {
		return
	}
	switch u := btf.UnderlyingType(t).(type) {
	case *btf.Struct:
		d.structure(u.Members, name, named, at, size, depth)
	case *btf.Union:
		d.structure(u.Members, name, named, at, size, depth)
	case *btf.Array:
		d.array(t, u, name, at, depth)
	default:
		d.add(t, name, at, size)
	}
}

// add adds a difference of whole bytes, unless some of them are missing.
func (d *differ) add(t btf.Type, name string, at, size int) {
	if at >= 0 && at+size <= len(d.before) {
		d.changes = append(d.changes, Change{name, t, d.before[at : at+size], d.after[at : at+size]})
	}
}

// array compares the elements of an array. An array of char is compared as a whole, as
// far as its bytes are there.
func (d *differ) array(t btf.Type, a *btf.Array, name string, at, depth int) {
	size, err := btf.Sizeof(a.Type)
	if i, ok := btf.As[*btf.Int](a.Type); ok && i.Size == 1 && i.Name == "char" {
		n := min(int(a.Nelems), len(d.before)-at)
		if n < int(a.Nelems) {
			t = &btf.Array{Type: a.Type, Index: a.Index, Nelems: uint32(n)}
		}
		d.add(t, name, at, n)
		return
	}
	for i := 0; err == nil && size > 0 && i < int(a.Nelems) && at+i*size < len(d.before) && d.budget >= 0; i++ {
		d.value(a.Type, name+"["+strconv.Itoa(i)+"]", at+i*size, at+i*size, depth+1)
	}
}

// structure compares the members of a structure.
func (d *differ) structure(members []btf.Member, name string, named, at, size, depth int) {
	found, prefix := len(d.changes), name
	if prefix != "" {
		prefix += "."
	}
	for _, m := range members {
		full, off := prefix+m.Name, at+int(m.Offset.Bytes())
		begin := off
		if m.Name == "" {
			full, begin = name, named
		}
		if m.BitfieldSize > 0 {
			d.bitfield(m, full, 8*at+int(m.Offset))
		} else {
			d.value(m.Type, full, begin, off, depth+1)
		}
	}
	if len(d.changes) == found && at+size <= len(d.before) && d.budget >= 0 {
		first, end := at, at+size
		for d.before[first] == d.after[first] {
			first++
		}
		for d.before[end-1] == d.after[end-1] {
			end--
		}
		d.add(bytesOf(end-first), prefix+"(padding at "+strconv.Itoa(first-named)+")", first, end-first)
	}
}

// bitfield compares a bitfield at an offset in bits.
func (d *differ) bitfield(m btf.Member, name string, bit int) {
	size, err := btf.Sizeof(m.Type)
	width := int(m.BitfieldSize)
	if err != nil || m.Name == "" || bit < 0 || size > 8 || width > 8*size || (bit+width+7)/8 > len(d.before) {
		return
	}
	_, before := wideBits(d.before, uint(bit), uint(width), false)
	_, after := wideBits(d.after, uint(bit), uint(width), false)
	if before == after {
		return
	}
	if isSigned(m.Type) {
		before, after = signExtend(before, uint(width)), signExtend(after, uint(width))
	}
	word := func(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n)[:size] }
	d.changes = append(d.changes, Change{name, m.Type, word(before), word(after)})
}

// isSigned reports whether a type is one of signed numbers.
func isSigned(t btf.Type) bool {
	switch t := btf.UnderlyingType(t).(type) {
	case *btf.Int:
		return t.Encoding&btf.Signed != 0
	case *btf.Enum:
		return t.Signed
	}
	return false
}

// bytesOf returns the type of an array of bytes.
func bytesOf(n int) btf.Type {
	return &btf.Array{Type: &btf.Int{Name: "unsigned char", Size: 1}, Nelems: uint32(n)}
}
