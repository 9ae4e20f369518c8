package kallsyms

import (
	"errors"
	"iter"
)

// Wanted selects the symbols that a table has.
type Wanted struct {
	// Keep reports whether the table has the symbols called name. The name is
	// valid only during the call. If Keep is nil, the table has all symbols.
	Keep func(name string) bool
	// Prefixes lists prefixes such that the name of each wanted symbol begins
	// with one of them. If it is nil, names may begin with anything.
	Prefixes []string
}

// Table is a symbol table. It can be used by several goroutines at once.
type Table struct {
	names   string // of all symbols, concatenated
	modules []string
	entries []entry // in the order of the file
	lines   int     // in the file, kept or not
	bits    uint64  // set in any address of the file

	byName nameIndex
	byAddr addrIndex
}

// entry is a Symbol without pointers, which takes half the memory.
type entry struct {
	addr   uint64
	name   uint32 // in Table.names
	module uint32 // in Table.modules
	size   uint16 // of the name
	kind   byte
}

// Len returns the number of symbols that were kept.
func (t *Table) Len() int { return len(t.entries) }

// Modules returns the names of the modules of which symbols were kept.
func (t *Table) Modules() []string { return t.modules[1:] }

// All returns the symbols that were kept, in the order of the file.
func (t *Table) All() iter.Seq[Symbol] {
	return func(yield func(Symbol) bool) {
		for i := range t.entries {
			if !yield(t.symbol(uint32(i))) {
				return
			}
		}
	}
}

// Functions returns the symbols where a function may begin, in the order of
// the file. A name may occur more than once.
func (t *Table) Functions() iter.Seq[Symbol] {
	return func(yield func(Symbol) bool) {
		for s := range t.All() {
			if s.Entry() && !yield(s) {
				return
			}
		}
	}
}

// Hidden reports whether the kernel hid the addresses: symbols were read, and
// all their addresses are zero.
func (t *Table) Hidden() bool { return t.lines > 0 && t.bits == 0 }

// ErrHidden is returned by [Table.NeedAddresses].
var ErrHidden = errors.New("read kernel symbol addresses: all are zero, as CAP_SYSLOG is missing or " +
	"kernel.kptr_restrict is 2: add CAP_SYSLOG and set kernel.kptr_restrict to 1 or 0")

// NeedAddresses returns [ErrHidden] if the kernel hid the addresses.
func (t *Table) NeedAddresses() error {
	if t.Hidden() {
		return ErrHidden
	}
	return nil
}

func (t *Table) name(i uint32) string {
	e := &t.entries[i]
	return t.names[e.name : e.name+uint32(e.size)]
}

func (t *Table) symbol(i uint32) Symbol {
	e := &t.entries[i]
	return Symbol{Addr: e.addr, Type: e.kind, Name: t.name(i), Module: t.modules[e.module]}
}
