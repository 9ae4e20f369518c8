package kallsyms

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unsafe"
)

// chunk is the number of bytes read at a time. No line may be longer; the
// longest that a kernel writes has some 600 bytes.
const chunk = 64 << 10

// Read reads a symbol table in the format of /proc/kallsyms: lines of address,
// type, name and, after a tab, the module in brackets. It keeps only the symbols
// for whose name keep returns true, or all if keep is nil. The name is valid only
// during the call of keep.
func Read(r io.Reader, keep func(name string) bool) (*Table, error) {
	return readItems(r, keep, splitLine, parseLine)
}

// readItems reads a table whose items are lines or records.
func readItems(r io.Reader, keep func(name string) bool, split func(text string, all bool) int, parse func(item string) (Symbol, bool)) (*Table, error) {
	p := parser{keep: keep, split: split, parse: parse, modules: map[string]uint32{"": 0}, table: &Table{modules: []string{""}}}
	size := chunk
	if left, ok := r.(interface{ Len() int }); ok {
		size = min(size, left.Len()+1) // a table may be read in many parts
	}
	buf := make([]byte, size)
	used := 0 // bytes at the start of buf, of an incomplete item
	for {
		n, end := fill(r, buf[used:])
		if end != nil && end != io.EOF {
			return nil, fmt.Errorf("read symbol table: %w", end)
		}
		text := buf[:used+n]
		// The chunk is used as a string without a copy, which saves 5 MB in
		// all. The table keeps no part of it.
		whole, err := p.add(unsafe.String(&buf[0], len(text)), end != nil)
		if err != nil {
			return nil, err
		}
		if end != nil {
			return p.finish(), nil
		}
		if used = copy(buf, text[whole:]); used == chunk {
			return nil, fmt.Errorf("parse symbol table, line %d: longer than %d bytes", p.table.lines+1, chunk)
		}
	}
}

// fill reads until buf is full or r ends. A single read is not enough because
// the kernel returns one page at a time.
func fill(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var m int
		m, err = r.Read(buf[n:])
		n += m
	}
	return n, err
}

// parser builds a table from text, one chunk at a time.
type parser struct {
	keep    func(name string) bool
	split   func(text string, all bool) int // returns the size of the first item, or 0 if it is incomplete
	parse   func(item string) (Symbol, bool)
	table   *Table
	modules map[string]uint32 // their indices in table.modules

	names   []byte // of the symbols of the chunk, concatenated
	entries []entry

	namesBefore   []string // of earlier chunks
	entriesBefore [][]entry
	size          int // of all names
}

// add parses the items in text and returns the number of bytes that they take.
// The last item may be incomplete unless all is true, which means that no more
// text follows.
func (p *parser) add(text string, all bool) (used int, err error) {
	for used < len(text) {
		size := p.split(text[used:], all)
		if size == 0 {
			break
		}
		p.table.lines++
		item := text[used : used+size]
		symbol, ok := p.parse(item)
		if !ok {
			return 0, fmt.Errorf("parse symbol table, line %d: %.80q is not an address, a type, a name and a module",
				p.table.lines, strings.TrimSuffix(item, "\n"))
		}
		p.table.bits |= symbol.Addr
		if p.keep == nil || p.keep(symbol.Name) {
			p.keepSymbol(symbol)
		}
		used += size
	}
	p.namesBefore, p.names = append(p.namesBefore, string(p.names)), p.names[:0]
	p.entriesBefore, p.entries = append(p.entriesBefore, slices.Clone(p.entries)), p.entries[:0]
	return used, nil
}

// keepSymbol adds s to the table, with copies of its strings.
func (p *parser) keepSymbol(s Symbol) {
	module, ok := p.modules[s.Module]
	if !ok {
		module = uint32(len(p.table.modules))
		name := strings.Clone(s.Module)
		p.modules[name] = module
		p.table.modules = append(p.table.modules, name)
	}
	p.entries = append(p.entries, entry{
		addr:   s.Addr,
		name:   uint32(p.size),
		size:   uint16(len(s.Name)),
		module: module,
		kind:   s.Type,
	})
	p.names = append(p.names, s.Name...)
	p.size += len(s.Name)
}

// finish returns the table, with its slices copied to their exact size.
func (p *parser) finish() *Table {
	p.table.names = strings.Join(p.namesBefore, "")
	p.table.entries = slices.Concat(p.entriesBefore...)
	return p.table
}
