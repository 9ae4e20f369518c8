package render

import (
	"fmt"
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// Symbols names kernel addresses. What finds them may be a table that takes memory and
// time, so it is opened when first needed.
type Symbols struct {
	open   func() (kallsyms.Finder, error)
	warn   func(error) // is called once with the reason if there are no names
	asked  bool
	finder kallsyms.Finder // or nil
}

// NewSymbols returns a Symbols that names addresses by what open returns. If open
// fails, warn is called with the error.
func NewSymbols(open func() (kallsyms.Finder, error), warn func(error)) *Symbols {
	return &Symbols{open: open, warn: warn}
}

// Load opens what finds symbols. If that fails there are none.
func (s *Symbols) Load() {
	if s.asked {
		return
	}
	s.asked = true
	finder, err := s.open()
	if err != nil {
		s.warn(fmt.Errorf("addresses are shown without names: %w", err))
		return
	}
	s.finder = finder
}

// Set makes f what names addresses from now on.
func (s *Symbols) Set(f kallsyms.Finder) { s.asked, s.finder = true, f }

// at returns the symbol at an address as name+0xoff [module], or "" if unknown.
func (s *Symbols) at(addr uint64) string {
	s.Load()
	if s.finder != nil {
		if symbol, offset, ok := pointedAt(s.finder, addr); ok {
			return place(symbol, offset)
		}
	}
	return ""
}

// codeReach is how many bytes of a BPF program, or of what the kernel generates for probes,
// values are taken to point to. The table does not tell where such code ends, and what
// follows its pages may be a stack.
const codeReach = 4096

// pointedAt returns the symbol that a value points to, and the offset in it.
func pointedAt(f kallsyms.Finder, addr uint64) (kallsyms.Symbol, uint64, bool) {
	symbol, offset, ok := f.At(addr)
	if ok && offset >= codeReach && (symbol.Module == "bpf" || strings.HasPrefix(symbol.Module, "__builtin__")) {
		return kallsyms.Symbol{}, 0, false
	}
	return symbol, offset, ok
}

// caller returns the symbol at a return address. A call that never returns may be
// the last instruction of a function: its return address is in the next function.
func (s *Symbols) caller(addr uint64) string {
	s.Load()
	if s.finder != nil {
		if symbol, offset, ok := s.finder.At(addr - 1); ok {
			return place(symbol, offset+1)
		}
	}
	return ""
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
	if s.finder != nil {
		if symbol, offset, ok := pointedAt(s.finder, addr); ok {
			return append(dst, sizedPlace(symbol, offset, s.finder.Size(symbol))...)
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
	if s.finder != nil {
		for _, symbol := range s.finder.Lookup(fn.Symbol) {
			if symbol.Module != fn.Module || !symbol.Entry() || len(fn.Addrs) == 1 && symbol.Addr != fn.Addrs[0] {
				continue
			}
			if size != 0 {
				return sizedPlace(place, offset, 0)
			}
			size = s.finder.Size(symbol)
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

// NeedsSymbols reports whether a unit's events show symbols at addresses, or as lines of
// the kernel's trace file the sizes of functions.
func NeedsSymbols(u *compiler.Unit, format string) bool {
	for _, ev := range u.Events {
		if (format == "text" || format == "ftrace") && isLine(ev) {
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
