package compiler

import (
	"fmt"

	"github.com/cilium/ebpf/btf"
)

// Function is a kernel function, a tracepoint, or an iterator, that can be traced.
type Function struct {
	Name       string // as shown to the user
	Module     string // "" for vmlinux
	Tracepoint bool
	Iterator   bool // its first parameter describes the iteration, the others an object
	// LastAgain is set for an iterator whose last call, which should have NULL in place
	// of an object, has the last object once more (bpf_iter_ksym_seq_stop in
	// kernel/kallsyms.c).
	LastAgain bool
	Type      *btf.Func
	Signature
	// Untyped is set if BTF does not describe the function, so that nothing is
	// known of its arguments and its result.
	Untyped bool
	// Copies is the number of functions of this name in the BTF.
	Copies int
	// Symbol is the name of the code. It may have a suffix that the compiler
	// gave to a changed copy of the function.
	Symbol string
	// Addrs has the addresses of the code if the symbol alone is ambiguous: a
	// name may stand for several functions.
	Addrs []uint64
	// Addr is the address of the code if only one function has the symbol, or 0 if
	// several have it or the kernel hides addresses.
	Addr uint64

	Types *btf.Spec // where Type is from
}

// Notes returns sentences about what may surprise someone who traces the function.
func (fn *Function) Notes() []string {
	var notes []string
	if fn.Symbol != fn.Type.Name {
		notes = append(notes, fmt.Sprintf(
			"%s is a copy that the compiler changed: it may have fewer arguments than %s, so check what is shown of them",
			fn.Symbol, fn.Type.Name))
	}
	if n := len(fn.Addrs); n > 1 {
		notes = append(notes, fmt.Sprintf("%s is the name of %d functions with the same arguments: all are traced", fn.Name, n))
	}
	return notes
}

// Word is the place of one 8-byte word of a parameter or result.
type Word struct {
	Slot  int   // index in a trampoline's context
	Reg   int16 // offset in struct pt_regs; -1 if it is on the stack
	Stack int   // offset from the stack pointer at entry, if Reg is -1
}

// Param is a parameter of a function, or its result.
type Param struct {
	Name  string
	Type  btf.Type
	Size  int    // in bytes
	Words []Word // where it is passed
	// Typed is set if a trampoline program may load the word itself. The
	// verifier refuses this for pointers to anything but a structure or void.
	Typed bool
	// Pointer is set if the verifier takes the loaded word for a pointer to a
	// structure rather than a number, see program.untype of package codegen.
	Pointer bool
	// InMemory is set if the result is a structure in memory that the caller has
	// reserved. The word is its address. AAPCS64 preserves that address only
	// until the function begins, so there is no word then.
	InMemory bool
	// Copy is the structure that Type points to, if the address of a copy is
	// passed instead of the structure. AAPCS64 does so for structures of more
	// than two words.
	Copy btf.Type
}

// Signature is a function's parameters and result with their places.
type Signature struct {
	Params   []Param
	Result   *Param // nil for void
	Variadic bool
}

// Words returns the number of argument words that a trampoline would pass.
func (s *Signature) Words() int {
	n := 0
	for _, p := range s.Params {
		n += len(p.Words)
	}
	return n
}
