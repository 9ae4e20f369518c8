package compiler

import (
	"math/bits"
	"slices"
	"strconv"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// shown is what a record has of an item.
type shown struct {
	fault  Fault
	number bool   // head is there
	head   uint64 // the number, the pointer, or where an access was based
	data   []byte // the bytes of the value or of the pointee
	text   bool   // data is a string, and what follows its NUL is anything
}

// formatted is a number as its item's format makes it.
type formatted struct {
	num    uint64
	bits   int
	signed bool
	bad    bool
	base   uint64
}

// formatted is the number of an item whose value is one.
func (r *reference) formatted(it *spec.Item, c cell) formatted {
	c = r.number(c)
	f := formatted{num: c.num, bits: c.width(), signed: c.typ.signed, bad: c.bad, base: c.base}
	switch name := it.Format.Name; name {
	case "be":
		f.num, f.signed = bits.ReverseBytes64(f.num)>>(64-f.bits), false
	case "", "x", "d", "u", "c", "string", "ustring", "symbol", "ip4", "ip6", "mac":
	default:
		f.bits, _ = strconv.Atoi(name[1:])
		f.signed = name[0] == 's'
		f.num = cut(f.num, f.bits, f.signed)
	}
	return f
}

// addressSizes are those of the formats of network addresses.
var addressSizes = map[string]int{"ip4": 4, "ip6": 16, "mac": 6}

// show is what a record must have of an item.
func (r *reference) show(it *spec.Item) (shown, error) {
	c, err := r.eval(it.Value)
	if err != nil {
		return shown{}, err
	}
	if !c.typ.scalar() {
		return r.showBytes(c), nil
	}
	f := r.formatted(it, c)
	if f.bad {
		return shown{fault: ValueFault, number: true, head: f.base}, nil
	}
	s := shown{number: true, head: f.num}
	switch format := it.Format.Name; {
	case format == "string", format == "ustring", format == "" && c.typ.has(cInt) && c.typ.to.isChar():
		r.showText(&s, format == "ustring")
	case format == "" && c.typ.kind == cPointer && c.typ.to.size > 0:
		r.showPointee(&s, c.typ.to.size)
	case addressSizes[format] != 0 && c.typ.kind == cPointer:
		r.showPointee(&s, addressSizes[format])
	}
	return s, nil
}

// showBytes is for records and arrays.
func (r *reference) showBytes(c cell) shown {
	if c.in == inWords {
		return shown{data: c.words[:c.typ.size]}
	}
	b := r.read(&c, min(c.typ.size, r.max))
	if c.bad {
		return shown{fault: ValueFault, number: true, head: c.base}
	}
	return shown{data: slices.Clone(b)}
}

func (r *reference) showPointee(s *shown, size int) {
	c := cell{base: s.head}
	s.data = slices.Clone(r.read(&c, min(size, r.max)))
	if c.bad {
		s.fault = PointeeFault
	}
}

func (r *reference) showText(s *shown, user bool) {
	text, ok := r.text(s.head, user)
	if !ok {
		s.fault = PointeeFault
		return
	}
	s.text, s.data = true, []byte(text[:min(len(text), r.max+1)]+"\x00")
}
