package kallsyms

import "strings"

// Symbol is one line of the table.
type Symbol struct {
	Addr   uint64 // zero if the kernel hides it
	Type   byte   // as in nm(1); lower case means local to its source file or, in a module, not exported
	Name   string
	Module string // empty for the kernel itself
}

// Text reports whether s is code: a function or a part of one.
func (s Symbol) Text() bool {
	return s.Type|0x20 == 't' || s.Type|0x20 == 'w'
}

// Entry reports whether s may be the start of a function. The other symbols in
// the text are cold parts, which compilers move away from their function, and
// the padding before functions, which the kernel gives its own names (__cfi_
// with CONFIG_CFI_CLANG since Linux 6.1, __pfx_ since 6.3).
func (s Symbol) Entry() bool {
	return s.Text() && !cold(s.Name) &&
		!strings.HasPrefix(s.Name, "__pfx_") && !strings.HasPrefix(s.Name, "__cfi_")
}

// Absolute reports whether the address of s is a plain number. On x86 before
// Linux 6.15 the addresses of per-CPU variables are: they are offsets from zero.
func (s Symbol) Absolute() bool { return s.Type == 'a' || s.Type == 'A' }

// Base returns name without the suffixes that compilers add to clones, as in
// copy_process.isra.0 and foo.constprop.0.cold: the original function's name.
func Base(name string) string {
	if name == "" {
		return ""
	}
	if i := strings.IndexByte(name[1:], '.'); i >= 0 {
		return name[:i+1]
	}
	return name
}

// cold reports whether name is that of a cold part: foo.cold, or foo.cold.12
// from older compilers.
func cold(name string) bool {
	suffixes := name[len(Base(name)):]
	return strings.HasSuffix(suffixes, ".cold") || strings.Contains(suffixes, ".cold.")
}
