package runtime

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// Self is the process id of this process as BPF programs see it. In a
// container that differs from os.Getpid, and a program is asked.
func Self() (uint32, error) {
	pid, _, err := selfIDs()
	return pid, err
}

// SelfThread is the id of this thread as BPF programs see it.
func SelfThread() (uint32, error) {
	_, tid, err := selfIDs()
	return tid, err
}

func selfIDs() (pid, tid uint32, err error) {
	ns, err := os.Readlink("/proc/self/ns/pid")
	if err == nil && ns == initialPIDNamespace {
		return uint32(os.Getpid()), uint32(unix.Gettid()), nil
	}
	ids, err := askSelf()
	if errors.Is(err, unix.EPERM) {
		if why := ReadPrivileges().Refusal(); why != "" {
			err = errors.New(why)
		}
	}
	if err != nil {
		return 0, 0, fmt.Errorf("ask the kernel for the process id of ksnoop: %w", err)
	}
	return uint32(ids >> 32), uint32(ids), nil
}

// askSelf runs a program that tells the ids of the thread that runs it.
func askSelf() (uint64, error) {
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
	return pidtid, nil
}
