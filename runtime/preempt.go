package runtime

import (
	goruntime "runtime"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
)

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
