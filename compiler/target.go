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
	Module  func(name string) (*btf.Spec, error) // types of a loaded module; nil: there are none
	Symbols *kallsyms.Table                      // at least the symbols of the functions in the specs; nil: not known
	// TypeNames lists the names of the types of vmlinux of a kind ([TypeKind],
	// or FuncKind), some more than once. Nil, or if it does not know them, all
	// types are decoded for them.
	TypeNames func(kind string) (names iter.Seq[string], known bool)
	// Hookable says whether ftrace has a hook in a function; nil: not known.
	Hookable func(function string) bool
	Features Features
	Arch     *Arch
}

// ErrNoModuleBTF is what [Target].Module returns for a module without BTF.
var ErrNoModuleBTF = errors.New("the module has no BTF")

// Features is what a kernel's trampolines and probes can do, for the user who
// asks.
type Features struct {
	// Trampoline: fentry and fexit programs can be attached.
	Trampoline bool
	// Preemptible: a task can be preempted inside a program. A trampoline
	// then drops the hits of others on that CPU; kprobes run with preemption
	// off and lose none.
	Preemptible bool
	// TrampolineWords is the number of 8-byte argument words that a
	// trampoline passes on: 6, from 6.12 on 12.
	TrampolineWords int
	// TrampolineStructs: records of up to 16 bytes may be passed by value
	// to a traced function (6.1).
	TrampolineStructs bool
	// CurrentTask: programs can be given the current task's task_struct
	// (bpf_get_current_task_btf, 5.11).
	CurrentTask bool
	// RuntimeAlloc: hash maps of tracing programs may allocate their
	// elements on use (bpf_mem_alloc, 6.1).
	RuntimeAlloc bool
	// ConsistentBTF: functions of one name whose prototypes differ are left
	// out of BTF (pahole 1.25, Linux 6.4).
	ConsistentBTF bool
	// ReturnInstances is the number of concurrent calls to ask for when a
	// kretprobe is made; 0 where the kernel sets no such limit.
	ReturnInstances int
	// NoKprobe says why kprobes and kretprobes cannot be made, although the
	// kernel has them: perf_event_paranoid; "" if they can.
	NoKprobe string
	// NoModules says why fentry and tp_btf cannot be had in modules, although
	// they can be in the kernel; "" if they can.
	NoModules string
	// KprobeMulti: one link puts a program on many functions, with a cookie
	// for each (kprobe.multi and kretprobe.multi; 6.12 of Debian's kernels).
	KprobeMulti bool
	// SessionIsReturn is the BTF id of the kernel function
	// bpf_session_is_return, where kprobe.session links can be made (6.12);
	// else 0.
	SessionIsReturn btf.TypeID
	// ReturnsUnlimited: kretprobe.multi and kprobe.session follow any number
	// of concurrent calls (fprobe on fgraph, 6.14). Before, they skip some.
	ReturnsUnlimited bool
	// CancelRepeats: where the entry side of a session cancels its return,
	// return sides of others on the function may run twice for the call
	// (fprobe on fgraph clears too little of what it keeps; seen on 6.18, not
	// on 7.2).
	CancelRepeats bool
}
