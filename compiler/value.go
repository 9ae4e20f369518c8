package compiler

import "github.com/cilium/ebpf/btf"

// Value is a resolved expression: what it is and how to reach it.
type Value struct {
	Name   string   // as in the spec: skb->len
	Format string   // one of [spec.Formats]; "": as its type says
	Type   btf.Type // as declared, or what it was cast to
	Side   Side     // when it can be read
	Base   Base     // where it begins
	// Path is the accesses from the base on: each adds an offset to a
	// pointer and reads there, the last one the value itself. Empty: the
	// value is the base.
	Path []Access
	// Load is how what is read becomes a number; nil for records and arrays.
	Load *Scalar
	// Casts are the numbers that it is converted to, in order.
	Casts []Scalar
	// Swap: the bytes of the number are reversed at the end.
	Swap bool
	// Scalar is the number that comes out; nil for records and arrays.
	Scalar *Scalar
	// Pointee is what to follow a pointer to; nil: the pointer alone.
	Pointee btf.Type
	// Text says that the pointee is a string, and where.
	Text Text
	// Elem is how the elements of an array are read, one by one, and shown;
	// nil: as the type says.
	Elem *Value
}

// Side is when a value can be read.
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
)

// Base is where a value begins: at a word of a parameter or of the result, at
// a variable, or at something that the kernel knows of every call.
type Base struct {
	Param *Param
	Word  int // of Param
	// Register: the parameter is made up of a register, or of a word of the
	// stack, where the probe is hit.
	Register bool
	// Caller: it is where the function returns to.
	Caller bool
	// Addr is the address of a variable. PerCPU is that of the table of
	// offsets to add to it for each CPU, if it is a per-CPU variable.
	Addr, PerCPU uint64
	Builtin      Builtin
	Const        []byte // a string that is always the same, with its NUL
}

// Builtin is something that the kernel knows of every call.
type Builtin uint8

// The builtins of the spec language, but for arguments and the return value.
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
)

// Access is one read of memory at an offset from a pointer.
type Access struct {
	Off    int
	Size   int
	User   bool // it is memory of the process
	Direct bool // the verifier knows the type, so a plain load will do
	Addr   bool // nothing is read: the value is the address itself
}

// direct says whether all of the path is plain loads for a trampoline program.
func (v *Value) direct() bool {
	if len(v.Path) == 0 || v.Base.Param == nil || !v.Base.Param.Typed {
		return false
	}
	for _, a := range v.Path {
		if !a.Direct {
			return false
		}
	}
	return true
}

// inWords says whether the value is what the base's words hold.
func (v *Value) inWords() bool { return len(v.Path) == 0 && v.Base.Param != nil }
