package kallsyms

import (
	"strconv"
	"strings"
)

// Finder finds symbols of a kernel. A [Table] that has all symbols does, and so may
// the kernel itself.
type Finder interface {
	// Lookup returns all symbols with exactly this name.
	Lookup(name string) []Symbol
	// At returns the symbol that contains addr and the offset of addr in it.
	At(addr uint64) (s Symbol, offset uint64, ok bool)
	// Size returns the number of bytes of s, or 0 if that is not known.
	Size(s Symbol) uint64
}

// Finder returns t, or [ErrHidden] if the kernel hid the addresses.
func (t *Table) Finder() (Finder, error) {
	if err := t.NeedAddresses(); err != nil {
		return nil, err
	}
	return t, nil
}

// A Place is the position of an address in a symbol.
type Place struct {
	Symbol Symbol // without a type
	Offset uint64
	Size   uint64 // of the symbol, or 0 if it is not known
}

// ParsePlace parses what the kernel prints for addr with the format %pS:
// "name+0xoffset/0xsize [module]", or a number if there is no symbol, for which it
// returns false. It returns false as well where [Table.At] finds nothing. BPF programs
// get the module "bpf", as in /proc/kallsyms: %pS prints none for them.
func ParsePlace(text string, addr uint64) (p Place, ok bool) {
	text, module, inModule := strings.Cut(text, " [")
	plus := strings.LastIndexByte(text, '+')
	if plus <= 0 {
		return Place{}, false
	}
	offset, size, _ := strings.Cut(text[plus+1:], "/")
	var known [2]bool
	p.Offset, known[0] = hexNumber(offset)
	p.Size, known[1] = hexNumber(size)
	p.Symbol = Symbol{Addr: addr - p.Offset, Name: text[:plus]}
	if inModule {
		p.Symbol.Module, inModule = strings.CutSuffix(module, "]")
		known[0] = known[0] && inModule && p.Symbol.Module != ""
	} else if isProgram(p.Symbol.Name) {
		p.Symbol.Module = "bpf"
	}
	if known != [2]bool{true, true} || p.Offset >= Reach || p.Offset > 0 && marksEnd(p.Symbol.Name) || strings.ContainsAny(p.Symbol.Name, " \t\n") {
		return Place{}, false
	}
	if p.Size > Reach {
		p.Size = 0
	}
	return p, true
}

// hexNumber parses a number such as "0x1f".
func hexNumber(text string) (n uint64, ok bool) {
	digits, ok := strings.CutPrefix(text, "0x")
	n, err := strconv.ParseUint(digits, 16, 64)
	return n, ok && err == nil
}

// isProgram reports whether a name is that of a BPF program, which has its tag in 16
// digits, or of a trampoline.
func isProgram(name string) bool {
	if tag, ok := strings.CutPrefix(name, "bpf_prog_"); ok && len(tag) >= 16 {
		_, digits := parseHex(tag)
		return digits == 16 && (len(tag) == 16 || tag[16] == '_')
	}
	number, ok := strings.CutPrefix(name, "bpf_trampoline_")
	_, err := strconv.ParseUint(number, 10, 64)
	return ok && err == nil
}
