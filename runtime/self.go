package runtime

import (
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// initialPIDNamespace is the name of the namespace in which the kernel's
// helpers count processes (PROC_PID_INIT_INO in include/linux/proc_ns.h).
const initialPIDNamespace = "pid:[4026531836]"

// Self is the process id of this process as BPF programs see it. In a
// container that differs from os.Getpid, and a program is asked.
func Self() (uint32, error) {
	ns, err := os.Readlink("/proc/self/ns/pid")
	if err == nil && ns == initialPIDNamespace {
		return uint32(os.Getpid()), nil
	}
	id, err := askSelf()
	if err != nil {
		return 0, fmt.Errorf("ask the kernel for the process id of ksnoop: %w", err)
	}
	return id, nil
}

// askSelf runs a program of this process's own that tells the id.
func askSelf() (uint32, error) {
	result, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		return 0, err
	}
	defer result.Close()
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "self", Type: ebpf.RawTracepoint, License: "Dual MIT/GPL",
		Instructions: asm.Instructions{
			asm.FnGetCurrentPidTgid.Call(),
			asm.LoadMapValue(asm.R1, result.FD(), 0),
			asm.StoreMem(asm.R1, 0, asm.R0, asm.DWord),
			asm.Mov.Imm(asm.R0, 0),
			asm.Return(),
		},
	})
	if err != nil {
		return 0, err
	}
	defer prog.Close()
	if _, err := prog.Run(&ebpf.RunOptions{}); err != nil {
		return 0, err
	}
	var pidtid uint64
	if err := result.Lookup(uint32(0), &pidtid); err != nil {
		return 0, err
	}
	return uint32(pidtid >> 32), nil
}
