package compiler

import (
	"strings"

	"github.com/cilium/ebpf/btf"
)

// Value is a resolved expression: its type and how to compute it.
type Value struct {
	Name   string   // as in the spec: skb->len
	Format string   // one of [spec.Formats]; "" for the format of the type
	Type   btf.Type // as declared, or the target of a cast
	Side   Side     // when it can be read
	Base   Base     // where it begins
	// Path has the accesses from the base on. Each adds an offset to a pointer
	// and reads there; the last one reads the value itself. If Path is empty,
	// the value is the base.
	Path []Access
	// Load describes how the bytes read become a number; nil for structures and
	// arrays.
	Load *Scalar
	// Casts are the number types that it is converted to, in order.
	Casts []Scalar
	// Swap reverses the bytes of the number at the end.
	Swap bool
	// Scalar describes the resulting number; nil for structures and arrays.
	Scalar *Scalar
	// Pointee is the type to follow a pointer to; nil records the pointer
	// alone.
	Pointee btf.Type
	// Text is set if the pointee is a string, and tells what kind of string it is.
	Text Text
	// Before is set if the value at return is compared with what it was at entry,
	// see [spec.Diff].
	Before *Value
	// Hidden is set if the value is not shown: another value is compared with it, or it
	// is a part of an address that is compared.
	Hidden bool
	// Walk is set if Text is [PathText].
	Walk *PathWalk
	// Elem describes how the elements of an array are read, one by one, and
	// shown; nil if the type tells that.
	Elem *Value
}

// DataType returns the type of what is recorded: the type that a followed
// pointer points to, or the type of the value.
func (v *Value) DataType() btf.Type {
	if v.Pointee != nil {
		return v.Pointee
	}
	return v.Type
}

// Side is the side of a call on which a value can be read.
type Side uint8

// The sides of a call.
const (
	AnySide Side = iota // the same at entry and at return
	AtEntry
	AtReturn
)

// Text is a kind of string behind a pointer.
type Text uint8

// The kinds of strings.
const (
	NoText Text = iota
	KernelText
	UserText
	PathText   // names of a path, see [PathWalk]
	EitherText // in EitherSpace
)

// Space returns where the string is.
func (t Text) Space() Space {
	switch t {
	case UserText:
		return UserSpace
	case EitherText:
		return EitherSpace
	}
	return KernelSpace
}

// Space is whose memory an address is in.
type Space uint8

// The kinds of memory. EitherSpace is that of the process for an address of a process, and
// the kernel's for the others: so kprobe_events lines read without a u (Linux 5.8, commit
// 9de1fec50b23).
const (
	KernelSpace Space = iota
	UserSpace
	EitherSpace
)

// Base is the start of a value: a word of a parameter or of the result, a
// variable, or something that the kernel knows about every call.
type Base struct {
	Param *Param
	Word  int // of Param
	// Register is set if the parameter is made up of a register, or of a word
	// of the stack, at the place of the probe.
	Register bool
	// Caller is set if the value is the return address of the function.
	Caller bool
	// Addr is the address of a variable. For a per-CPU variable, PerCPU is the
	// address of the table of offsets to add for each CPU; otherwise it is 0.
	Addr, PerCPU uint64
	Builtin      Builtin
	Const        []byte // a string constant with its NUL
	// Of is the operation that computes the base, or nil.
	Of *Operation
	// Number is a constant that a value is computed from, or nil.
	Number *uint64
	// Kept is a word of the entry that a value at return begins with, or nil: see
	// [spec.After].
	Kept *Value
}

// Builtin is something that the kernel knows about every call.
type Builtin uint8

// The builtins of the spec language, except arguments and the return value.
const (
	NoBuiltin Builtin = iota
	Comm
	PID
	TID
	CPU
	UID
	CgroupID
	Duration
	KernelStack
	UserStack // frames of the process, each a struct bpf_stack_build_id
	Task      // the address of the thread's task_struct
)

// ContainerFormat is the format of $container: the id of a cgroup, which is shown as the
// container that it belongs to.
const ContainerFormat = "container"

// Access is one read of memory at an offset from a pointer.
type Access struct {
	Off    int
	Size   int
	In     Space // whose memory it reads
	Direct bool  // whether the verifier knows the type, so that a plain load will do
	Addr   bool  // whether nothing is read: the value is the address itself
	// Pointer is set if the verifier takes the result of a plain load for a
	// pointer rather than a number, see program.untype of package codegen. From 6.17 on
	// it does so for all pointers, not only for those to structures.
	Pointer bool
}

// InWords reports whether the base's words hold the value.
func (v *Value) InWords() bool { return len(v.Path) == 0 && v.Base.Param != nil }

// IsText reports whether the value is shown as a string.
func (v *Value) IsText() bool {
	if v.Text != NoText || strings.HasSuffix(v.Format, "string") || v.Base.Builtin == Comm {
		return true
	}
	a, ok := btf.As[*btf.Array](v.Type)
	return ok && v.Format == "" && IsChar(a.Type)
}

// OfCPU reports whether the value depends on the CPU that it is read for.
func (v *Value) OfCPU() bool {
	for o := range v.Values {
		if o.Base.PerCPU != 0 || o.Base.Builtin == CPU {
			return true
		}
	}
	return false
}
