package runtime

import (
	"bytes"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
)

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
	room, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		return nil
	}
	defer room.Close()
	load := asm.LoadImm(asm.R1, int64(variable), asm.DWord)
	load.Src = pseudoVariable
	prog, err := loadProgram(&ebpf.ProgramSpec{
		Name: "per_cpu", Type: ebpf.RawTracepoint, License: "Dual MIT/GPL",
		Instructions: asm.Instructions{
			asm.LoadMem(asm.R2, asm.R1, 0, asm.DWord), // the CPU
			load,
			asm.FnPerCpuPtr.Call(),
			asm.LoadMapValue(asm.R1, room.FD(), 0),
			asm.StoreMem(asm.R1, 0, asm.R0, asm.DWord),
			asm.Mov.Imm(asm.R0, 0),
			asm.Return(),
		},
	}, 0, nil)
	if err != nil {
		return nil
	}
	defer prog.Close()
	for cpu := range cpus {
		var addr uint64
		if _, err := testRun(prog.FD(), uint64(cpu)); err != nil || room.Lookup(uint32(0), &addr) != nil || addr == 0 {
			return nil
		}
		all = append(all, addr+offset)
	}
	return all
}
