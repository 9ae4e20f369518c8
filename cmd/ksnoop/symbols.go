package main

import (
	"fmt"
	"io"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// symbols names kernel addresses. The table takes memory and time, so it is
// read when first asked for.
type symbols struct {
	read   func() (*kallsyms.Table, error)
	stderr io.Writer // is told once why there are no names
	asked  bool
	table  *kallsyms.Table
}

// load reads the table, which is empty if there is none.
func (s *symbols) load() {
	if s.asked {
		return
	}
	s.asked = true
	table, err := s.read()
	if err == nil {
		err = table.NeedAddresses()
	}
	if err != nil {
		fmt.Fprintf(s.stderr, "ksnoop: addresses are shown without names: %v\n", err)
		return
	}
	s.table = table
}

// at is what an address is in, as name+0xoff [module]; "": it is not known.
func (s *symbols) at(addr uint64) string {
	s.load()
	if s.table == nil {
		return ""
	}
	symbol, offset, ok := s.table.At(addr)
	if !ok {
		return ""
	}
	return place(symbol, offset)
}

// caller is what a return address is in. A call that never returns may be the
// last instruction of a function: its return address is in the next one.
func (s *symbols) caller(addr uint64) string {
	s.load()
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
	text := plainName(s.Name)
	if offset != 0 {
		text += fmt.Sprintf("+%#x", offset)
	}
	if s.Module != "" {
		text += " [" + plainName(s.Module) + "]"
	}
	return text
}

// appendSized appends what is at an address, as the kernel prints it: "name+0xoff/0xsize [module]",
// or the address if that is not known.
func (s *symbols) appendSized(dst []byte, addr uint64) []byte {
	s.load()
	if s.table != nil {
		if symbol, offset, ok := s.table.At(addr); ok {
			return append(dst, sizedPlace(symbol, offset, s.table.Size(symbol))...)
		}
	}
	return appendHex(dst, addr)
}

// codePlace is an offset in a function, with its size if that is known: a name
// may stand for several.
func (s *symbols) codePlace(fn *compiler.Function, offset uint64) string {
	s.load()
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
	text := plainName(s.Name) + fmt.Sprintf("+%#x", offset)
	if size != 0 {
		text += fmt.Sprintf("/%#x", size)
	}
	if s.Module != "" {
		text += " [" + plainName(s.Module) + "]"
	}
	return text
}

// needsSymbols says whether events of a unit show what is at addresses, or as
// text the sizes of functions.
func needsSymbols(u *compiler.Unit, format string) bool {
	for _, ev := range u.Events {
		if format == "text" && isLine(ev) {
			return true
		}
		for _, v := range ev.Items {
			if v.Format == "symbol" || v.Elem != nil && v.Elem.Format == "symbol" || v.Base.Builtin == compiler.KernelStack {
				return true
			}
		}
	}
	return false
}

// appendFrame names the n-th address of a stack: where the traced function is,
// then its callers, the innermost first.
func (s *symbols) appendFrame(dst []byte, n int, addr uint64) []byte {
	name := s.caller
	if n == 0 {
		name = s.at
	}
	if text := name(addr); text != "" {
		return append(dst, text...)
	}
	return appendHex(dst, addr)
}
