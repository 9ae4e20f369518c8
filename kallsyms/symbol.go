package kallsyms

import "strings"

// Symbol is one line of the table.
type Symbol struct {
	Addr   uint64 // zero if the kernel hides it
	Type   byte   // as in nm(1): lower case is local to its file
	Name   string
	Module string // empty for the kernel itself
}

// Text reports whether s is code: a function or a part of one.
func (s Symbol) Text() bool {
	switch s.Type {
	case 't', 'T', 'w', 'W':
		return true
	}
	return false
}

// Entry reports whether s may be where a function begins. The others in the
// text are cold parts that compilers move away from their function, and the
// padding before functions that the kernel gives a name of its own (__cfi_
// with CONFIG_CFI_CLANG since Linux 6.1, __pfx_ since 6.3).
func (s Symbol) Entry() bool {
	return s.Text() && !cold(s.Name) &&
		!strings.HasPrefix(s.Name, "__pfx_") && !strings.HasPrefix(s.Name, "__cfi_")
}

// absolute reports whether the address of s is a plain number. On x86 before
// Linux 6.15 the per-CPU variables are such: offsets from zero.
func (s Symbol) absolute() bool { return s.Type == 'a' || s.Type == 'A' }

// Base returns the function that a clone was made of: name up to the suffixes
// of the compiler, as in copy_process.isra.0 and foo.constprop.0.cold.
func Base(name string) string {
	if name == "" {
		return ""
	}
	if i := strings.IndexByte(name[1:], '.'); i >= 0 {
		return name[:i+1]
	}
	return name
}

// cold reports whether name is a cold part: foo.cold, in older compilers
// foo.cold.12.
func cold(name string) bool {
	suffixes := name[len(Base(name)):]
	return strings.HasSuffix(suffixes, ".cold") || strings.Contains(suffixes, ".cold.")
}
