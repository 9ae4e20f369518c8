package render

import (
	"fmt"
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// Symbols names kernel addresses. The table takes memory and time, so it is read
// when first needed.
type Symbols struct {
	read  func() (*kallsyms.Table, error)
	warn  func(error) // is called once with the reason if there are no names
	asked bool
	table *kallsyms.Table
	// containers has the containers of cgroups, or is nil if they are not to be
	// looked for.
	containers Containers
}

// NewSymbols returns a Symbols that names addresses by the table that read returns.
// If read fails, warn is called with the error.
func NewSymbols(read func() (*kallsyms.Table, error), warn func(error)) *Symbols {
	return &Symbols{read: read, warn: warn}
}

// Load reads the table. If that fails the table is empty.
func (s *Symbols) Load() {
	if s.asked {
		return
	}
	s.asked = true
	table, err := s.read()
	if err == nil {
		err = table.NeedAddresses()
	}
	if err != nil {
		s.warn(fmt.Errorf("addresses are shown without names: %w", err))
		return
	}
	s.table = table
}

// Set makes a table the one that names addresses from now on.
func (s *Symbols) Set(table *kallsyms.Table) { s.asked, s.table = true, table }

// at returns the symbol at an address as name+0xoff [module], or "" if unknown.
func (s *Symbols) at(addr uint64) string {
	s.Load()
	if s.table == nil {
		return ""
	}
	symbol, offset, ok := pointedAt(s.table, addr)
	if !ok {
		return ""
	}
	return place(symbol, offset)
}

// codeReach is how much of a BPF program, or of what the kernel generates for probes,
// values are taken to point to. The table does not tell where that ends, and what
// follows its pages may be a stack.
const codeReach = 4096

// pointedAt returns the symbol that a value points to, and the offset in it.
func pointedAt(t *kallsyms.Table, addr uint64) (kallsyms.Symbol, uint64, bool) {
	symbol, offset, ok := t.At(addr)
	if ok && offset >= codeReach && (symbol.Module == "bpf" || strings.HasPrefix(symbol.Module, "__builtin__")) {
		return kallsyms.Symbol{}, 0, false
	}
	return symbol, offset, ok
}

// caller returns the symbol at a return address. A call that never returns may be
// the last instruction of a function: its return address is in the next function.
func (s *Symbols) caller(addr uint64) string {
	s.Load()
	if s.table == nil {
		return ""
	}
	symbol, offset, ok := s.table.At(addr - 1)
	if !ok {
		return ""
	}
	return place(symbol, offset+1)
}

func place(s kallsyms.Symbol, offset uint64) string {
	text := PlainName(s.Name)
	if offset != 0 {
		text += fmt.Sprintf("+%#x", offset)
	}
	if s.Module != "" {
		text += " [" + PlainName(s.Module) + "]"
	}
	return text
}

// appendSized appends the symbol at an address as the kernel prints it:
// "name+0xoff/0xsize [module]", or the address if there is no symbol.
func (s *Symbols) appendSized(dst []byte, addr uint64) []byte {
	s.Load()
	if s.table != nil {
		if symbol, offset, ok := pointedAt(s.table, addr); ok {
			return append(dst, sizedPlace(symbol, offset, s.table.Size(symbol))...)
		}
	}
	return appendHex(dst, addr)
}

// codePlace returns an offset in a function as text, with the function's size if
// it is known: several functions may have the same name.
func (s *Symbols) codePlace(fn *compiler.Function, offset uint64) string {
	s.Load()
	place := kallsyms.Symbol{Name: fn.Symbol, Module: fn.Module}
	var size uint64
	if s.table != nil {
		for _, symbol := range s.table.Lookup(fn.Symbol) {
			if symbol.Module != fn.Module || !symbol.Entry() || len(fn.Addrs) == 1 && symbol.Addr != fn.Addrs[0] {
				continue
			}
			if size != 0 {
				return sizedPlace(place, offset, 0)
			}
			size = s.table.Size(symbol)
		}
	}
	return sizedPlace(place, offset, size)
}

func sizedPlace(s kallsyms.Symbol, offset, size uint64) string {
	text := PlainName(s.Name) + fmt.Sprintf("+%#x", offset)
	if size != 0 {
		text += fmt.Sprintf("/%#x", size)
	}
	if s.Module != "" {
		text += " [" + PlainName(s.Module) + "]"
	}
	return text
}

// NeedsSymbols reports whether a unit's events show symbols at addresses, or in
// the text format the sizes of functions.
func NeedsSymbols(u *compiler.Unit, format string) bool {
	for _, ev := range u.Events {
		if format == "text" && isLine(ev) {
			return true
		}
		for _, v := range append(ev.Items[:len(ev.Items):len(ev.Items)], ev.Probe.Key...) {
			if v.Format == "symbol" || v.Elem != nil && v.Elem.Format == "symbol" || v.Base.Builtin == compiler.KernelStack {
				return true
			}
		}
	}
	return false
}

// appendFrame appends the symbol at the n-th address of a stack: address 0 is in the
// traced function, then come its callers, the innermost first.
func (s *Symbols) appendFrame(dst []byte, n int, addr uint64) []byte {
	name := s.caller
	if n == 0 {
		name = s.at
	}
	if text := name(addr); text != "" {
		return append(dst, text...)
	}
	return appendHex(dst, addr)
}
