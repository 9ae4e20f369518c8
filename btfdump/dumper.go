// Package btfdump turns raw bytes and their BTF type into text that looks like
// C or into JSON, and BTF types into C declarations.
//
// A type is compiled once; its values are then printed many times without
// allocation and without errors, whatever the bytes hold and however few of
// them there are:
//
//	d, err := btfdump.New(fileType, btfdump.Options{EmitStrings: true})
//	...
//	text := d.AppendText(nil, data)
//
// prints
//
//	(struct file){
//		.f_count = (atomic_long_t){
//			.counter = (s64)1,
//		},
//		.f_flags = (unsigned int)32768,
//	}
//
// The text is that of libbpf's btf_dump__dump_type_data where that is right,
// and shows every non-zero byte where that is not:
//
//   - What is zero is left out, except the value itself. A record is zero when
//     all its members are; padding does not count.
//   - An element that follows left-out ones carries its index as in C:
//     `[7] = 3,`. Elements after it count on from there.
//   - Arrays of bytes are printed whole, in hex and on one line, arrays of bool
//     as numbers on one line.
//   - Arrays of char that hold text are C strings, up to their last non-zero byte.
//   - Signed bitfields are decimal, unsigned ones hex.
//   - Data that ends too early is marked once: `/* 12 bytes cut */`.
//   - A flexible array at the end of a record takes all the bytes there are.
package btfdump

import (
	"fmt"
	"strings"

	"github.com/cilium/ebpf/btf"
)

// Options choose how values look. The zero value prints one member per line,
// indented by tabs, with names and casts and without zeros.
type Options struct {
	// Compact leaves out indentation and newlines: `(struct x){.a = (int)1,}`.
	Compact bool
	// SkipNames leaves out member names and casts.
	SkipNames bool
	// EmitZeroes prints zero members and elements too.
	EmitZeroes bool
	// EmitStrings prints arrays of char that hold text as C strings. Without
	// it, and when the bytes are no text, they are printed by element.
	EmitStrings bool
	// BigEndian says that the data comes from a big endian machine.
	BigEndian bool
	// Indent is written once per level; empty means a tab.
	Indent string
	// IndentLevel is the level of the outermost value.
	IndentLevel int
	// Symbolize finds the function at or before an address, and the distance in
	// bytes. It may be nil, and must be safe for concurrent use.
	Symbolize func(addr uint64) (name string, offset uint64, ok bool)
}

// Dumper prints values of one type. It never changes after New and is safe for
// concurrent use.
type Dumper struct {
	opts   Options
	ops    []op
	root   op
	json   jsonPlan
	indent string // enough for most levels
}

// indented is the number of levels below the outermost one whose prefix is ready.
const indented = 16

// New compiles t, which may be any type that has a size, a variable or a data
// section. It refuses types without a size (void, functions, forward
// declarations) and BTF that contradicts itself.
func New(t btf.Type, o Options) (*Dumper, error) {
	if o.Indent == "" {
		o.Indent = "\t"
	}
	o.IndentLevel = max(o.IndentLevel, 0)

	c := newCompiler()
	root, err := c.root(t)
	if err != nil {
		return nil, fmt.Errorf("plan dump of %s: %w", TypeName(t), err)
	}
	d := &Dumper{opts: o, ops: c.ops, root: root, json: planJSON(c, &root)}
	if !o.Compact {
		d.indent = strings.Repeat(o.Indent, o.IndentLevel+indented)
	}
	return d, nil
}

// Takes returns how many bytes of data belong to the value; the rest is ignored.
func (d *Dumper) Takes(data []byte) int {
	if d.root.tail {
		return len(data)
	}
	return min(len(data), int(d.root.size))
}

// AppendText appends the value in data to dst, without a newline at its end.
// Bytes beyond the size of the type are ignored unless it ends in a flexible
// array; missing ones are marked. Nothing is allocated when dst has room.
func (d *Dumper) AppendText(dst, data []byte) []byte {
	p := printer{d: d, dst: dst, data: data}
	p.item(&d.root, 0, 0, false, noIndex)
	return p.dst
}
