package kallsyms

import (
	"bytes"
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
	p := parser{keep: keep, modules: map[string]uint32{"": 0}, table: &Table{modules: []string{""}}}
	buf := make([]byte, chunk)
	used := 0 // bytes of a line that has begun
	for {
		n, end := fill(r, buf[used:])
		if end != nil && end != io.EOF {
			return nil, fmt.Errorf("read symbol table: %w", end)
		}
		text := buf[:used+n]
		whole := len(text)
		if end == nil {
			whole = bytes.LastIndexByte(text, '\n') + 1
		}
		// The chunk as a string without a copy, which would be 5 MB in all:
		// parse keeps nothing of it.
		if err := p.parse(unsafe.String(&buf[0], whole)); err != nil {
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
	table   *Table
	modules map[string]uint32 // their indices in table.modules

	names   []byte // of the chunk, one after the other
	entries []entry

	namesBefore   []string // of the chunks before
	entriesBefore [][]entry
	size          int // of all names
}

// parse parses lines; the last one may lack its newline.
func (p *parser) parse(text string) error {
	for text != "" {
		line, rest := text, ""
		if end := strings.IndexByte(text, '\n'); end >= 0 {
			line, rest = text[:end], text[end+1:]
		}
		p.table.lines++
		symbol, ok := parseLine(line)
		if !ok {
			return fmt.Errorf("parse symbol table, line %d: %.80q is not an address, a type, a name and a module",
				p.table.lines, line)
		}
		p.table.bits |= symbol.Addr
		if p.keep == nil || p.keep(symbol.Name) {
			p.add(symbol)
		}
		text = rest
	}
	p.namesBefore, p.names = append(p.namesBefore, string(p.names)), p.names[:0]
	p.entriesBefore, p.entries = append(p.entriesBefore, slices.Clone(p.entries)), p.entries[:0]
	return nil
}

// add keeps s, with copies of its strings.
func (p *parser) add(s Symbol) {
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
