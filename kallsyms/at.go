package kallsyms

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"sync"
)

// Reach is the largest size of a symbol that At and End assume, in bytes. The table has
// no sizes, so the last symbol of the kernel or of a module would have no end.
const Reach = 1 << 20

// At returns the symbol that contains addr and the offset of addr in it. Of
// several at one address it takes the first one, as the kernel does, which has sorted
// them: weak ones and those of the linker are last, and names with few leading
// underscores first (scripts/kallsyms.c). The answer is right only if the table has
// all symbols.
func (t *Table) At(addr uint64) (Symbol, uint64, bool) {
	t.byAddr.once.Do(func() { t.byAddr.fill(t) })
	s, ok := t.last(t.byAddr.order[:t.behind(addr)])
	if !ok {
		return Symbol{}, 0, false
	}
	offset := addr - s.Addr
	if offset >= Reach || offset > 0 && marksEnd(s.Name) {
		return Symbol{}, 0, false
	}
	return s, offset, true
}

// behind returns the index, in the order of addresses, of the first symbol
// after addr.
func (t *Table) behind(addr uint64) int {
	order := t.byAddr.order
	return sort.Search(len(order), func(i int) bool { return t.entries[order[i]].addr > addr })
}

// addrIndex holds the entries sorted by address; entries with equal addresses
// stay in the order of the file. It is built on first use.
type addrIndex struct {
	once  sync.Once
	order []uint32
}

func (x *addrIndex) fill(t *Table) {
	x.order = make([]uint32, len(t.entries))
	for i := range x.order {
		x.order[i] = uint32(i)
	}
	sort.Slice(x.order, func(i, j int) bool { // slices.SortFunc would be compiled for this type alone: 8 KB
		a, b := x.order[i], x.order[j]
		return cmp.Or(cmp.Compare(t.entries[a].addr, t.entries[b].addr), cmp.Compare(a, b)) < 0
	})
}

// last finds the last address in sorted that has a symbol. Of the symbols there it
// returns the first one in the order of the file, or none if only an EndMark is there.
func (t *Table) last(sorted []uint32) (found Symbol, ok bool) {
	at := uint64(0)
	for _, i := range slices.Backward(sorted) {
		s := t.symbol(i)
		if s.Addr == 0 || at != 0 && s.Addr != at {
			break
		}
		if s.Absolute() {
			continue
		}
		if at = s.Addr; s.Name != EndMark {
			found, ok = s, true
		}
	}
	return found, ok
}

// EndMark is the name of a symbol that ends the one before it in a table that lacks
// others. At does not find it.
const EndMark = "__end_"

// marksEnd reports whether name is a symbol that the linker puts at the end of
// a section. Such a symbol contains nothing.
func marksEnd(name string) bool {
	switch name {
	case "_etext", "_einittext", "_edata", "_end", "__bss_stop", "__init_end":
		return true
	}
	return strings.HasPrefix(name, "__stop_") || strings.HasPrefix(name, "__end_")
}

// End returns the address where s ends: that of the next symbol with another
// address, but at most 1 MB after the start of s. The answer is right only if
// the table has all symbols.
func (t *Table) End(s Symbol) uint64 {
	if next, ok := t.after(s); ok {
		return next.Addr
	}
	return s.Addr + Reach
}

// Size returns the number of bytes from s to the next symbol of the kernel, or
// of the module that s is in, or 0 if there is none within 1 MB. The answer is
// right only if the table has all symbols.
func (t *Table) Size(s Symbol) uint64 {
	if next, ok := t.after(s); ok && next.Module == s.Module {
		return next.Addr - s.Addr
	}
	return 0
}

// after returns the first symbol behind the address of s, if there is one within 1 MB.
func (t *Table) after(s Symbol) (Symbol, bool) {
	t.byAddr.once.Do(func() { t.byAddr.fill(t) })
	next := t.behind(s.Addr)
	if next == len(t.byAddr.order) {
		return Symbol{}, false
	}
	found := t.symbol(t.byAddr.order[next])
	return found, found.Addr-s.Addr <= Reach
}
