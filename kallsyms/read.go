package kallsyms

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unsafe"
)

// chunk is how much is read at a time; no line may be longer. The longest that
// a kernel writes has some 600 bytes.
const chunk = 64 << 10

// Read reads a symbol table in the format of /proc/kallsyms: lines of address,
// type, name and, after a tab, the module in brackets. It keeps only symbols
// whose name keep accepts; nil keeps all. The name is only valid during the
// call of keep.
func Read(r io.Reader, keep func(name string) bool) (*Table, error) {
	return readItems(r, keep, splitLine, parseLine)
}

// readItems reads a table of items, be they lines or records.
func readItems(r io.Reader, keep func(name string) bool, split func(text string, all bool) int, parse func(item string) (Symbol, bool)) (*Table, error) {
	p := parser{keep: keep, split: split, parse: parse, modules: map[string]uint32{"": 0}, table: &Table{modules: []string{""}}}
	buf := make([]byte, chunk)
	used := 0 // bytes of an item that has begun
	for {
		n, end := fill(r, buf[used:])
		if end != nil && end != io.EOF {
			return nil, fmt.Errorf("read symbol table: %w", end)
		}
		text := buf[:used+n]
		// The chunk as a string without a copy, which would be 5 MB in all:
		// the table keeps nothing of it.
		whole, err := p.add(unsafe.String(&buf[0], len(text)), end != nil)
		if err != nil {
			return nil, err
		}
		if end != nil {
			return p.finish(), nil
		}
		if used = copy(buf, text[whole:]); used == len(buf) {
			return nil, fmt.Errorf("parse symbol table, line %d: longer than %d bytes", p.table.lines+1, chunk)
		}
	}
}

// fill reads until buf is full or r ends: the kernel gives a page at a time.
func fill(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var m int
		m, err = r.Read(buf[n:])
		n += m
	}
	return n, err
}

// parser makes a table of text, a piece for each chunk.
type parser struct {
	keep    func(name string) bool
	split   func(text string, all bool) int // the size of the first item; 0: more is to come of it
	parse   func(item string) (Symbol, bool)
	table   *Table
	modules map[string]uint32 // their indices in table.modules

	names   []byte // of the chunk, one after the other
	entries []entry

	namesBefore   []string // of the chunks before
	entriesBefore [][]entry
	size          int // of all names
}

// add parses items, and returns how much of the text they take: of the last one
// the rest may be still to come, unless the text is all that there is.
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

// keepSymbol keeps s, with copies of its strings.
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

// finish returns the table, in no more memory than it needs.
func (p *parser) finish() *Table {
	p.table.names = strings.Join(p.namesBefore, "")
	p.table.entries = slices.Concat(p.entriesBefore...)
	return p.table
}
