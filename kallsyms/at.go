package kallsyms

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// reach is how far behind its beginning a symbol can contain an address. The
// table has no sizes: what follows the last symbol of the kernel or a module
// belongs to nobody.
const reach = 1 << 20

// At returns the symbol that contains addr and the offset of addr in it. Of
// several at one address it prefers functions to data, global and weak ones to
// local ones, then the name with the fewest leading underscores. The answer is
// right only if everything was kept.
func (t *Table) At(addr uint64) (Symbol, uint64, bool) {
	t.byAddr.once.Do(func() { t.byAddr.fill(t) })
	order := t.byAddr.order
	aliases := t.aliases(order[:t.behind(addr)])
	if len(aliases) == 0 {
		return Symbol{}, 0, false
	}
	s := slices.MinFunc(aliases, compareAliases)
	offset := addr - s.Addr
	if offset >= reach || offset > 0 && marksEnd(s.Name) {
		return Symbol{}, 0, false
	}
	return s, offset, true
}

// behind returns the number, in the order of addresses, of the first symbol
// behind addr.
func (t *Table) behind(addr uint64) int {
	i, _ := slices.BinarySearchFunc(t.byAddr.order, addr, func(i uint32, addr uint64) int {
		if t.entries[i].addr <= addr {
			return -1
		}
		return 1
	})
	return i
}

// addrIndex has the entries in the order of their addresses, and of the file
// where these are equal. It is made when first asked for.
type addrIndex struct {
	once  sync.Once
	order []uint32
}

func (x *addrIndex) fill(t *Table) {
	x.order = make([]uint32, len(t.entries))
	for i := range x.order {
		x.order[i] = uint32(i)
	}
	slices.SortFunc(x.order, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(t.entries[a].addr, t.entries[b].addr), cmp.Compare(a, b))
	})
}

// aliases returns the symbols at the last address of sorted, in the order of
// the file. Addresses of zero and absolute symbols are no addresses.
func (t *Table) aliases(sorted []uint32) []Symbol {
	var symbols []Symbol
	for _, i := range slices.Backward(sorted) {
		s := t.symbol(i)
		if s.Addr == 0 || len(symbols) > 0 && s.Addr != symbols[0].Addr {
			break
		}
		if !s.absolute() {
			symbols = append(symbols, s)
		}
	}
	slices.Reverse(symbols)
	return symbols
}

// compareAliases is negative if a is the better name for the address of both.
func compareAliases(a, b Symbol) int {
	return cmp.Or(
		compareBool(!marksEnd(a.Name), !marksEnd(b.Name)),
		compareBool(a.Text(), b.Text()),
		compareBool(a.Entry(), b.Entry()),
		compareBool(a.Type < 'a' || a.Type == 'w', b.Type < 'a' || b.Type == 'w'),
		cmp.Compare(underscores(a.Name), underscores(b.Name)),
	)
}

// compareBool orders true before false.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

func underscores(name string) int { return len(name) - len(strings.TrimLeft(name, "_")) }

// marksEnd reports whether a symbol of this name contains nothing: the linker
// put it where a section ends.
func marksEnd(name string) bool {
	switch name {
	case "_etext", "_einittext", "_edata", "_end", "__bss_stop", "__init_end":
		return true
	}
	return strings.HasPrefix(name, "__stop_") || strings.HasPrefix(name, "__end_")
}

// End returns where s ends: at the next symbol with another address, or as far
// behind the beginning as a symbol can contain an address. The answer is right
// only if everything was kept.
func (t *Table) End(s Symbol) uint64 {
	t.byAddr.once.Do(func() { t.byAddr.fill(t) })
	order := t.byAddr.order
	next := t.behind(s.Addr)
	if next == len(order) {
		return s.Addr + reach
	}
	return min(t.entries[order[next]].addr, s.Addr+reach)
}
