package runtime

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
)

// maxReturnInstances is the largest number that a kretprobe can ask for
// (KRETPROBE_MAXACTIVE_MAX in kernel/trace/trace_kprobe.c).
const maxReturnInstances = 4096

// Features returns what the running kernel can do. It reads this from the
// kernel's types where they tell, and tries the rest without attaching to a
// function that could be called. For a user who may not load programs it returns
// what the kernel's types and version promise to those who may.
func (k *Kernel) Features() (compiler.Features, error) {
	v, build, err := release()
	if err != nil {
		return compiler.Features{}, err
	}
	f := promised(v, k.types)
	if f.KprobeMulti {
		f.SessionIsReturn = k.typeID("bpf_session_is_return", (*btf.Func)(nil))
	}
	f.CPUs = countCPUs()
	f.Preemptible = preemption(v, build, os.ReadFile).Possible
	// Without enough memory, EPERM would be mistaken for missing capabilities.
	lockable(v)
	if k.tryTrampoline(&f) || ReadPrivileges().Refusal() == "" {
		f.PreemptCount = k.preemptCount(f.CPUs)
		tryMulti(&f)
		f.NoKprobe = kprobeRefusal()
		f.NoModules = modulesRefusal()
	}
	return f, nil
}

// countCPUs returns the largest number of a possible CPU plus one or, if the kernel does
// not list them, the number of CPUs that this process can use.
func countCPUs() int {
	cpus, err := PossibleCPUs()
	if err != nil {
		return goruntime.NumCPU()
	}
	return slices.Max(cpus) + 1
}

// promised returns what a kernel of version v with these types can do.
func promised(v version, types *btf.Spec) compiler.Features {
	f := compiler.Features{
		Trampoline:        v.atLeast(5, 5) && hasStruct(types, "dyn_ftrace"),
		TrampolineWords:   6,
		TrampolineStructs: v.atLeast(6, 1),
		CurrentTask:       v.atLeast(5, 11),
		CountsSkipped:     v.atLeast(5, 12) || hasMember(types, "bpf_prog", "active"), // also where it was added to an older kernel
		FuncArg:           v.atLeast(5, 17),
		CompareExchange:   v.atLeast(5, 18),
		RuntimeAlloc:      hasMember(types, "bpf_htab", "ma"),
		ConsistentBTF:     v.atLeast(6, 4), // how BTF was made is not recorded anywhere
		ReturnInstances:   maxReturnInstances,
		KprobeMulti:       hasStruct(types, "bpf_kprobe_multi_link"), // not without CONFIG_FPROBE
		ReturnsUnlimited:  hasMember(types, "fprobe", "hlist_array"),
	}
	f.CancelRepeats = f.ReturnsUnlimited && !v.atLeast(7, 2)
	if v.atLeast(6, 6) {
		f.TrampolineWords = 12
	}
	if goruntime.GOARCH == compiler.ARM64.Name {
		promisedARM64(&f, v, types)
	}
	return f
}

// promisedARM64 corrects what a kernel for arm64 can do. Since 6.0 it loads
// trampolines; attaching them to functions takes direct calls, which 6.4 brought
// with this member. Arguments have 8 registers, and 6.16 passes on those on the stack
// as well.
func promisedARM64(f *compiler.Features, v version, types *btf.Spec) {
	f.Trampoline = f.Trampoline && hasMember(types, "ftrace_ops", "direct_call")
	f.TrampolineWords = 8
	if v.atLeast(6, 16) {
		f.TrampolineWords = 12
	}
}

// Functions to try fentry on. Their programs are only loaded, except for
// manyArgs.
const (
	plainArgs  = "vfs_read"
	structArgs = "from_kuid" // takes a kuid_t by value
	// manyArgs has 8 arguments (since 5.14), and ftrace itself is built
	// without hooks. Attaching to it fails, which is cheap: detaching a
	// trampoline takes 0.1 s. If 8 are too many, the error says so; otherwise
	// the error is that of the missing hook.
	manyArgs = "trace_seq_hex_dump"
)

// tryTrampoline sets in f what fentry programs can be attached to, and reports
// whether this user may load programs. If not, it leaves f unchanged.
func (k *Kernel) tryTrampoline(f *compiler.Features) bool {
	structs := k.tryFentry(structArgs)
	plain := structs
	if structs != nil {
		plain = k.tryFentry(plainArgs)
	}
	if errors.Is(plain, unix.EPERM) {
		return false
	}
	if !errors.Is(structs, errNoFunction) {
		f.TrampolineStructs = structs == nil
	}
	f.Trampoline = f.Trampoline && plain == nil
	if f.Trampoline {
		f.TrampolineWords = k.tryWords(f.TrampolineWords)
	}
	return true
}

// errNoFunction is the error for a function that this kernel lacks.
var errNoFunction = errors.New("no such function")

// tryFentry loads an fentry program for a function.
func (k *Kernel) tryFentry(function string) error {
	prog, err := k.loadFentry(function)
	if err == nil {
		prog.Close()
	}
	return err
}

// tryWords returns how many words of arguments a trampoline passes on, or assumed
// if that cannot be tried: arm64 has the same error for a function without a hook.
func (k *Kernel) tryWords(assumed int) int {
	if goruntime.GOARCH == compiler.ARM64.Name {
		return assumed
	}
	prog, err := k.loadFentry(manyArgs)
	if err != nil {
		return assumed
	}
	defer prog.Close()
	l, err := link.AttachTracing(link.TracingOptions{Program: prog})
	if err == nil {
		l.Close()
	}
	if errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, enotsupp) {
		return 6
	}
	return 12
}

func (k *Kernel) loadFentry(function string) (*ebpf.Program, error) {
	id := k.typeID(function, (*btf.Func)(nil))
	if id == 0 {
		return nil, errNoFunction
	}
	return loadProgram(&ebpf.ProgramSpec{
		Name: "try", Type: ebpf.Tracing, AttachType: ebpf.AttachTraceFEntry,
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
		License:      "Dual MIT/GPL",
	}, id, nil)
}

// tryMulti sets in f whether kprobe.multi and kprobe.session links can be made.
// Loading the program proves nothing: that works without CONFIG_FPROBE.
func tryMulti(f *compiler.Features) {
	f.KprobeMulti = f.KprobeMulti && tryLink(ebpf.AttachTraceKprobeMulti)
	if !f.KprobeMulti || !tryLink(ebpf.AttachTraceKprobeSession) {
		f.SessionIsReturn = 0
	}
}

// linkCreate is the argument of BPF_LINK_CREATE for many functions (union bpf_attr
// in include/uapi/linux/bpf.h).
type linkCreate struct {
	prog, target, kind, flags uint32
	multiFlags, count         uint32
	symbols, addrs, cookies   uint64
}

// tryLink reports whether the kernel makes links of this kind. It asks for a link
// whose address list is at an unmapped address: a kernel that makes such links
// answers EFAULT, others EOPNOTSUPP or EINVAL. Making a link and detaching it
// would take 0.1 s.
func tryLink(kind ebpf.AttachType) bool {
	prog, err := inert(kind)
	if err != nil {
		return false
	}
	defer prog.Close()
	const nowhere = 1
	attr := linkCreate{prog: uint32(prog.FD()), kind: uint32(kind), count: 1, addrs: nowhere}
	_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_LINK_CREATE, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	return errno == unix.EFAULT
}

// inert loads a program that does nothing.
func inert(kind ebpf.AttachType) (*ebpf.Program, error) {
	return ebpf.NewProgramWithOptions(&ebpf.ProgramSpec{
		Name: "try", Type: ebpf.Kprobe, AttachType: kind,
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
		License:      "Dual MIT/GPL",
	}, ebpf.ProgramOptions{LogDisabled: true})
}

// kprobeRefusal returns why this user may not make kprobes and what would change
// that, or "" if the user may.
func kprobeRefusal() string {
	err := tryKprobe()
	switch {
	case errors.Is(err, unix.EINVAL):
		return ""
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		if locked(os.ReadFile) {
			return errLockdown.Error()
		}
		return perfRefusal(paranoid(), ReadPrivileges())
	}
	return err.Error()
}

// perfRefusal returns why perf_event_open is refused to a process with
// CAP_PERFMON. Debian and others reserve perf events for CAP_SYS_ADMIN by values
// of perf_event_paranoid that the mainline kernel does not know.
func perfRefusal(paranoid string, p Privileges) string {
	if n, err := strconv.Atoi(paranoid); (err == nil && n <= 2) || p.SysAdmin && !p.UserNamespace {
		return "perf_event_open is refused, by a seccomp filter or a security module: let the container's profile allow it"
	}
	return "kernel.perf_event_paranoid is " + paranoid + ", which keeps kprobes from users without CAP_SYS_ADMIN (sysctl kernel.perf_event_paranoid=2 gives them to CAP_PERFMON)"
}

// modulesRefusal returns why this user cannot attach trampolines to modules,
// whose types must be asked for by number, or "" if the user can.
func modulesRefusal() string {
	types, err := btf.NewHandleFromID(vmlinuxTypes)
	if err == nil {
		types.Close()
	}
	if errors.Is(err, unix.EPERM) {
		return "fentry and tp_btf in a module take CAP_SYS_ADMIN"
	}
	return ""
}

// tryKprobe asks for a kprobe with neither a name nor an address. The kernel
// checks permission first, so it returns EINVAL to users who may make kprobes.
func tryKprobe() error {
	kind, err := kprobeType()
	if err != nil {
		return err
	}
	attr := unix.PerfEventAttr{Type: kind, Size: unix.PERF_ATTR_SIZE_VER1}
	fd, err := unix.PerfEventOpen(&attr, -1, 0, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err == nil {
		unix.Close(fd)
		return unix.EINVAL
	}
	return fmt.Errorf("perf_event_open: %w", err)
}

func paranoid() string {
	b, err := os.ReadFile("/proc/sys/kernel/perf_event_paranoid")
	if err != nil {
		return "too high"
	}
	return strings.TrimSpace(string(b))
}

// Preemption describes how the kernel preempts tasks that run in it.
type Preemption struct {
	Model    string // none, voluntary, lazy or full, two of them joined by "or", or "" if unknown
	Possible bool   // whether a task can be preempted inside the kernel
}

// preemption returns the kernel's preemption model. debugfs shows the one in
// force, but only to root, and only where it is mounted; otherwise the command
// line or the build string may name it. A kernel with the lazy model (6.13) that
// does not show it is assumed to be preemptible.
func preemption(v version, build string, readFile func(string) ([]byte, error)) Preemption {
	if b, err := readFile("/sys/kernel/debug/sched/preempt"); err == nil {
		_, rest, _ := bytes.Cut(b, []byte{'('})
		model, _, _ := bytes.Cut(rest, []byte{')'})
		return preemptionModel(string(model))
	}
	words := strings.Fields(build)
	switch {
	case slices.Contains(words, "PREEMPT_LAZY"):
		return preemptionModel("lazy")
	case slices.Contains(words, "PREEMPT") && v.atLeast(6, 13):
		return Preemption{Model: "full or lazy", Possible: true} // CONFIG_PREEMPT_LAZY has the same word
	case slices.Contains(words, "PREEMPT"), slices.Contains(words, "PREEMPT_RT"):
		return preemptionModel("full")
	case !slices.Contains(words, "PREEMPT_DYNAMIC"):
		return Preemption{Model: "none or voluntary"}
	}
	if b, err := readFile("/proc/cmdline"); err == nil {
		for _, arg := range slices.Backward(strings.Fields(string(b))) { // the last one counts
			if model, ok := strings.CutPrefix(arg, "preempt="); ok {
				return preemptionModel(model)
			}
		}
	}
	return Preemption{Possible: v.atLeast(6, 13)}
}

func preemptionModel(name string) Preemption {
	return Preemption{Model: name, Possible: name == "full" || name == "lazy"}
}

// preemptCount returns where this kernel counts the interrupts that it is in: on
// arm64 in the task, on x86 in a per-CPU variable, which from 6.2 to 6.14 was a
// member of pcpu_hot (asm/preempt.h of both).
func (k *Kernel) preemptCount(cpus int) (c compiler.PreemptCount) {
	if goruntime.GOARCH == compiler.ARM64.Name {
		info, inTask := compiler.MemberOffset(k.types, "task_struct", "thread_info")
		word, known := compiler.MemberOffset(k.types, "thread_info", "preempt_count")
		if inTask && known {
			c.Task = info + word
		}
		return c
	}
	variable, offset := k.typeID("__preempt_count", (*btf.Var)(nil)), 0
	if variable == 0 {
		variable = k.typeID("pcpu_hot", (*btf.Var)(nil))
		offset, _ = compiler.MemberOffset(k.types, "pcpu_hot", "preempt_count")
	}
	if variable != 0 {
		c.PerCPU = perCPUAddresses(variable, uint64(offset), cpus)
	}
	return c
}

// pseudoVariable is BPF_PSEUDO_BTF_ID (include/uapi/linux/bpf.h).
const pseudoVariable = asm.Register(3)

// perCPUAddresses returns the address of a per-CPU variable on each CPU, plus offset,
// or nil if the kernel does not tell. A program asks for them once: for each program
// with a variable the verifier searches all types, which takes 1.5 million instructions.
func perCPUAddresses(variable btf.TypeID, offset uint64, cpus int) (all []uint64) {
	load := asm.LoadImm(asm.R1, int64(variable), asm.DWord)
	load.Src = pseudoVariable
	a := newAsker("per_cpu", 8, func(answer *ebpf.Map) asm.Instructions {
		return asm.Instructions{
			asm.LoadMem(asm.R2, asm.R1, 0, asm.DWord), // the CPU
			load,
			asm.FnPerCpuPtr.Call(),
			asm.LoadMapValue(asm.R1, answer.FD(), 0),
			asm.StoreMem(asm.R1, 0, asm.R0, asm.DWord),
			asm.Mov.Imm(asm.R0, 0),
			asm.Return(),
		}
	})
	if a == nil {
		return nil
	}
	defer a.close()
	for cpu := range cpus {
		_, err := a.run(uint64(cpu))
		addr := binary.NativeEndian.Uint64(a.answer)
		if err != nil || addr == 0 {
			return nil
		}
		all = append(all, addr+offset)
	}
	return all
}
