package kallsyms

import (
	"hash/maphash"
	"math/bits"
	"strings"
	"sync"
)

// Lookup returns all symbols with exactly this name, in the order of the file.
func (t *Table) Lookup(name string) []Symbol {
	return t.based(Base(name), func(s Symbol) bool { return s.Name == name })
}

// Suffixed returns the clones that a compiler made of the function called name,
// such as name.isra.0, name.constprop.0 and name.part.0, in the order of the
// file. Cold parts are not among them.
func (t *Table) Suffixed(name string) []Symbol {
	return t.based(Base(name), func(s Symbol) bool {
		return s.Entry() && len(s.Name) > len(name) && s.Name[len(name)] == '.' && strings.HasPrefix(s.Name, name)
	})
}

// based returns the symbols whose base is base and for which match returns true.
func (t *Table) based(base string, match func(Symbol) bool) []Symbol {
	x := &t.byName
	x.once.Do(func() { x.fill(t) })
	var symbols []Symbol
	for i := x.heads[x.slot(base)]; i != 0; i = x.next[i-1] {
		if s := t.symbol(i - 1); match(s) {
			symbols = append(symbols, s)
		}
	}
	return symbols
}

// nameIndex finds symbols by the hash of the base of their name. It is built on
// first use. A map of all names would take longer to fill than the table takes
// to read, and more memory.
type nameIndex struct {
	once  sync.Once
	seed  maphash.Seed
	heads []uint32 // by slot: the index of its first entry plus one, or zero
	next  []uint32 // by entry: the index of the next entry in the slot plus one, or zero
}

func (x *nameIndex) fill(t *Table) {
	x.seed = maphash.MakeSeed()
	x.heads = make([]uint32, 1<<bits.Len(uint(len(t.entries))))
	x.next = make([]uint32, len(t.entries))
	for i := uint32(len(t.entries)); i > 0; i-- {
		slot := x.slot(Base(t.name(i - 1)))
		x.next[i-1], x.heads[slot] = x.heads[slot], i
	}
}

func (x *nameIndex) slot(base string) uint64 {
	return maphash.String(x.seed, base) & uint64(len(x.heads)-1)
}
