// Package btfdump prints raw bytes of a BTF type as text that looks like C or as
// JSON, and BTF types as C declarations.
//
// A type is compiled once. Its values can then be printed many times, without
// allocation and without errors, whatever the bytes are and however few:
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
// The text is that of libbpf's btf_dump__dump_type_data, except where that loses
// non-zero bytes:
//
//   - Zero members and elements are left out, but never the value itself. A
//     structure is zero if all its members are; padding does not count.
//   - An element after omitted ones has its index before it as in C: `[7] = 3,`.
//     Elements after it count on from there.
//   - Arrays of bytes are printed whole, in hex and on one line, arrays of bool
//     as numbers on one line.
//   - Arrays of char that hold text are C strings, up to their last non-zero byte.
//   - Signed bitfields are decimal, unsigned ones hex.
//   - If the data is too short, this is marked once: `/* 12 bytes cut */`.
//   - A flexible array at the end of a structure takes all remaining bytes.
package btfdump

import (
	"fmt"
	"strings"

	"github.com/cilium/ebpf/btf"
)

// Options control how values are printed. The zero value prints one member per
// line, indented by tabs, with names and casts and without zeros.
type Options struct {
	// Compact leaves out indentation and newlines: `(struct x){.a = (int)1,}`.
	Compact bool
	// SkipNames leaves out member names and casts.
	SkipNames bool
	// EmitZeroes prints zero members and elements too.
	EmitZeroes bool
	// EmitStrings prints arrays of char that hold text as C strings. Without
	// it, or if the bytes are not text, they are printed by element.
	EmitStrings bool
	// BigEndian is true if the data comes from a big endian machine.
	BigEndian bool
	// Indent is written once per level; empty means a tab.
	Indent string
	// IndentLevel is the level of the outermost value.
	IndentLevel int
	// Symbolize returns the function or the variable that a pointer points to, or
	// into, and the offset in it, in bytes. It is called for every pointer that is
	// not NULL. It may be nil. A [Dumper] can be used concurrently only if Symbolize can.
	Symbolize func(addr uint64) (name string, offset uint64, ok bool)
}

// Dumper prints values of one type. It never changes after New and is safe for
// concurrent use if [Options.Symbolize] is.
type Dumper struct {
	opts   Options
	ops    []op
	root   op
	json   jsonCode
	indent string // repeated for the first levels
}

// indented is the number of levels below the outermost one whose indentation is
// precomputed.
const indented = 16

// New compiles t, which may be any type that has a size, a variable or a data
// section. It refuses types without a size (void, functions, forward
// declarations) and inconsistent BTF.
func New(t btf.Type, o Options) (*Dumper, error) {
	if o.Indent == "" {
		o.Indent = "\t"
	}
	o.IndentLevel = max(o.IndentLevel, 0)

	c := &compiler{spans: map[spanKey]span{}, enums: map[*btf.Enum]*enumeration{}, casts: map[btf.Type]string{}}
	root, err := c.root(t)
	if err != nil {
		return nil, fmt.Errorf("dump of %s: %w", TypeName(t), err)
	}
	d := &Dumper{opts: o, ops: c.ops, root: root, json: compileJSON(c, &root)}
	if !o.Compact {
		d.indent = strings.Repeat(o.Indent, o.IndentLevel+indented)
	}
	return d, nil
}

// Takes returns the number of bytes of data that belong to the value. The rest is
// ignored.
func (d *Dumper) Takes(data []byte) int {
	if d.root.tail {
		return len(data)
	}
	return min(len(data), int(d.root.size))
}

// AppendText appends the value in data to dst, without a newline at its end.
// Bytes beyond the size of the type are ignored unless it ends in a flexible
// array. If bytes are missing, the text says so. AppendText does not allocate if
// dst has room.
func (d *Dumper) AppendText(dst, data []byte) []byte {
	p := printer{d: d, dst: dst, data: data}
	p.item(&d.root, 0, 0, false, noIndex)
	return p.dst
}
