package codegen

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// shown holds the parts of an item in a record.
type shown struct {
	fault  compiler.Fault
	number bool   // whether head is set
	head   uint64 // the number, the pointer, or the base address of an access
	data   []byte // the bytes of the value or of the pointee
	text   bool   // whether data is a string; bytes after its NUL are undefined
	path   string // names of a path and how it ends
	stack  bool   // whether data are the frames of a stack; bytes after them are undefined
}

// formatted is a number after conversion by its item's format.
type formatted struct {
	num    uint64
	bits   int
	signed bool
	bad    bool
	base   uint64
}

// formatted returns the number of an item with a scalar value.
func (r *reference) formatted(it *spec.Item, c cell) formatted {
	if it.Format.Name == "path" && !c.typ.scalar() { // its address
		c = cell{typ: pointerTo(c.typ), in: isNumber, num: c.base + c.off, bad: c.bad, base: c.base}
	}
	c = r.number(c)
	f := formatted{num: c.num, bits: c.width(), signed: c.typ.signed, bad: c.bad, base: c.base}
	switch name := it.Format.Name; name {
	case "be":
		f.num, f.signed = bits.ReverseBytes64(f.num)>>(64-f.bits), false
	case "", "x", "d", "u", "c", "string", "ustring", "symbol", "errno", "path", "ip", "ip4", "ip6", "mac":
	default:
		f.bits, _ = strconv.Atoi(name[1:])
		f.signed = name[0] == 's'
		f.num = cut(f.num, f.bits, f.signed)
	}
	return f
}

// addressSizes has the sizes of the formats of network addresses.
var addressSizes = map[string]int{"ip4": 4, "ip6": 16, "mac": 6}

// show returns what a record must contain of an item.
func (r *reference) show(it *spec.Item) (shown, error) {
	c, err := r.eval(it.Value)
	if err != nil {
		return shown{}, err
	}
	if c.typ == cStack {
		return r.showStack(strings.Contains(it.Value.String(), "ustack")), nil
	}
	if it.Format.Name == "path" && !r.hidden[it] {
		return r.showPath(it, c)
	}
	if !c.typ.scalar() {
		return r.showBytes(c), nil
	}
	f := r.formatted(it, c)
	if f.bad {
		return shown{fault: compiler.ValueFault, number: true, head: f.base}, nil
	}
	s := shown{number: true, head: f.num}
	if _, ok := it.Value.(*spec.Diff); ok || r.hidden[it] {
		return s, nil // pointers are compared themselves
	}
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

// showStack returns the frames of a stack, 64 at most, with their size in bytes.
func (r *reference) showStack(user bool) shown {
	stack, frame := r.call.now.kstack, 8
	if user {
		stack, frame = r.call.now.ustack, 32
	}
	if stack == "" {
		return shown{fault: compiler.PointeeFault, number: true, head: errno(14)}
	}
	stack = stack[:min(len(stack), 64*frame)]
	return shown{number: true, head: uint64(len(stack)), data: []byte(stack), stack: true}
}

// showBytes returns what is shown of structures and arrays.
func (r *reference) showBytes(c cell) shown {
	if c.in == inWords {
		return shown{data: c.words[:c.typ.size]}
	}
	b := r.read(&c, min(c.typ.size, r.max))
	if c.bad {
		return shown{fault: compiler.ValueFault, number: true, head: c.base}
	}
	return shown{data: slices.Clone(b)}
}

func (r *reference) showPointee(s *shown, size int) {
	c := cell{base: s.head}
	s.data = slices.Clone(r.read(&c, min(size, r.max)))
	if c.bad {
		s.fault = compiler.PointeeFault
	}
}

func (r *reference) showText(s *shown, user bool) {
	text, ok := r.text(s.head, user)
	if !ok {
		s.fault = compiler.PointeeFault
		return
	}
	s.text, s.data = true, []byte(text[:min(len(text), r.max+1)]+"\x00")
}
