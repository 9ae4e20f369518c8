package compiler

import (
	"errors"
	"iter"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/kallsyms"
)

// Target describes the kernel to compile for. It is plain data, so that any
// kernel can be simulated.
type Target struct {
	Kernel  *btf.Spec                            // types of vmlinux
	Partial bool                                 // Kernel has only those that the specs seem to need: what does not fit may fit all of them
	Module  func(name string) (*btf.Spec, error) // types of a loaded module; nil if there are no modules
	Modules func() []string                      // names of the loaded modules that have types; nil if not known
	Symbols *kallsyms.Table                      // symbols of at least the functions in the specs; nil if not known
	// AllSymbols reads all symbols, to find the name nearest to an unknown one; nil if
	// Symbols has all of them.
	AllSymbols func() (*kallsyms.Table, error)
	// TypeNames lists the names of the types of vmlinux of a kind
	// ([resolve.TypeKind] or [resolve.FuncKind]), some more than once. If it is
	// nil, or returns false, all types are decoded to get their names.
	TypeNames func(kind string) (names iter.Seq[string], known bool)
	// FuncsTaking lists the ids of the functions of vmlinux that have a parameter
	// pointing to the struct of this name, and FuncsNamed those of the functions of
	// this name. If they are nil, or return false, all types are decoded to find them.
	FuncsTaking, FuncsNamed func(name string) (ids []btf.TypeID, known bool)
	// EnumsWith lists the ids of the enums of vmlinux that have this enumerator. If it
	// is nil, or returns false, all types are decoded to find them.
	EnumsWith func(enumerator string) (ids []btf.TypeID, known bool)
	// Hookable reports whether ftrace has a hook in a function; nil if not
	// known.
	Hookable func(function string) bool
	Features Features
	Arch     *Arch // of the kernel, as [resolve.ArchOf] finds it; never nil
}

// ErrNoModuleBTF is the error that [Target].Module returns for a module without
// BTF.
var ErrNoModuleBTF = errors.New("the module has no BTF")

// Features describes what the trampolines and probes of a kernel can do for the
// user who runs ksnoop.
type Features struct {
	// Trampoline: fentry and fexit programs can be attached.
	Trampoline bool
	// Preemptible: a task can be preempted inside a program. A trampoline then
	// misses the calls of other tasks on that CPU. Kprobes run with preemption
	// disabled and miss none.
	Preemptible bool
	// CPUs is the number of possible CPUs, derived from the largest CPU number.
	// Calls are counted on each of them separately. If it is 0, they share
	// their counters.
	CPUs int
	// TrampolineWords is the number of 8-byte argument words that a trampoline
	// passes on: on amd64 6, and 12 from Linux 6.6 on; on arm64 8, and 12 from
	// 6.16 on.
	TrampolineWords int
	// TrampolineStructs: structures of up to 16 bytes may be passed by value
	// to a traced function (6.1).
	TrampolineStructs bool
	// CurrentTask: programs can be given the current task's task_struct
	// (bpf_get_current_task_btf, 5.11).
	CurrentTask bool
	// FuncArg: fentry and fexit programs can be given arguments and results
	// that they must not load themselves (bpf_get_func_arg, 5.17).
	FuncArg bool
	// RuntimeAlloc: hash maps of tracing programs may allocate their
	// elements on use (bpf_mem_alloc, 6.1).
	RuntimeAlloc bool
	// ConsistentBTF: functions of one name whose prototypes differ are left
	// out of BTF (pahole 1.25, Linux 6.4).
	ConsistentBTF bool
	// CompareExchange: programs can compare and exchange a word atomically (5.18;
	// amd64 has it since 5.12, but it is used from 5.18 on).
	CompareExchange bool
	// CountsSkipped: a trampoline skips a program that already runs on the CPU, and counts
	// that (5.12). Earlier ones run it.
	CountsSkipped bool
	// ReturnInstances is the number of concurrent calls to ask for when a
	// kretprobe is created, or 0 where the kernel has no such limit.
	ReturnInstances int
	// NoKprobe is the reason why kprobes and kretprobes cannot be created
	// although the kernel has them (perf_event_paranoid), or "" if they can.
	NoKprobe string
	// NoModules is the reason why fentry and tp_btf programs cannot be attached
	// in modules although they can in vmlinux, or "" if they can.
	NoModules string
	// KprobeMulti: one link attaches a program to many functions, with a cookie
	// for each (kprobe.multi and kretprobe.multi; 5.18, or 6.12 for Debian's kernels).
	KprobeMulti bool
	// SessionIsReturn is the BTF id of the kernel function
	// bpf_session_is_return where kprobe.session links can be created (6.12),
	// or 0.
	SessionIsReturn btf.TypeID
	// ReturnsUnlimited: kretprobe.multi and kprobe.session follow any number of
	// concurrent calls (fprobe on fgraph, 6.14). Before, they miss some.
	ReturnsUnlimited bool
	// CancelRepeats: if the entry side of a kprobe.session cancels its return, the
	// return sides of others on the function may run twice for the call (fprobe on
	// fgraph clears too little of its state; seen on 6.18, not on 7.2).
	CancelRepeats bool
	// PreemptCount tells what runs in an interrupt from what runs in a task.
	PreemptCount PreemptCount
}

// PreemptCount locates the word in which a kernel counts, on each CPU, the
// interrupts and softirqs that it is in (include/linux/preempt.h). The zero value means
// that this is not known.
type PreemptCount struct {
	PerCPU []uint64 // addresses of the words of all CPUs
	Task   int      // or the offset of the word in the task_struct of the current task
}

// Known reports whether programs can find the word.
func (c PreemptCount) Known() bool { return c.PerCPU != nil || c.Task != 0 }

// CommSize is TASK_COMM_LEN.
const CommSize = 16

// Stacks describes how to tell the kernel's stacks apart. Each task has one,
// and interrupts run on stacks of their own.
type Stacks struct {
	Size int // size of each in bytes, a power of two
	// Task is the offset in struct task_struct of the address of the task's
	// stack, or -1 if not known.
	Task int
}
