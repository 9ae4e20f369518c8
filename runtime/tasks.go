package runtime

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
)

// Task is a thread of the system, by the kernel's own ids: those of the initial
// pid namespace.
type Task struct {
	TID    uint32
	PID    uint32 // of its process
	Parent uint32 // process
	Number uint32 // of the thread in ksnoop's pid namespace, where it goes by that
	Signal uint64 // address of its process's signal_struct
}

// Tasks lists the threads in ksnoop's pid namespace. The kernel tells: /proc
// knows nothing of the ids outside a namespace. It needs CAP_BPF and
// CAP_PERFMON.
func (k *Kernel) Tasks() ([]Task, error) {
	at, err := findTaskMembers(k.types)
	if err != nil {
		return nil, err
	}
	spec := &ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{"tasks": {
		Name: "tasks", Type: ebpf.Tracing, AttachType: ebpf.AttachTraceIter, AttachTo: "task",
		License: "Dual MIT/GPL", Instructions: at.iterator(),
	}}}
	coll, err := k.load(spec)
	if err != nil {
		return nil, loadError(spec, err, lockableHere(), ReadPrivileges())
	}
	defer coll.Close()
	tasks, err := iterate(coll.Programs["tasks"], readTasks)
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	return tasks, nil
}

// readTasks reads what the iterator writes.
func readTasks(r io.Reader) ([]Task, error) {
	raw, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	tasks := make([]Task, len(raw)/taskSize)
	if err := binary.Read(bytes.NewReader(raw), binary.LittleEndian, tasks); err != nil {
		return nil, err
	}
	return tasks, nil
}

// taskMembers is where the kernel's structures have what is wanted of a task.
type taskMembers struct {
	pid, tgid, signal, realParent, threadPID int // in struct task_struct
	level, numbers                           int // in struct pid
}

// findTaskMembers finds them in a kernel's types.
func findTaskMembers(types *btf.Spec) (taskMembers, error) {
	var at taskMembers
	var errs []error
	for _, m := range []struct {
		record, name string
		off          *int
	}{
		{"task_struct", "pid", &at.pid},
		{"task_struct", "tgid", &at.tgid},
		{"task_struct", "signal", &at.signal},
		{"task_struct", "real_parent", &at.realParent},
		{"task_struct", "thread_pid", &at.threadPID},
		{"pid", "level", &at.level},
		{"pid", "numbers", &at.numbers},
	} {
		off, ok := compiler.MemberOffset(types, m.record, m.name)
		if !ok {
			errs = append(errs, fmt.Errorf("list the processes: struct %s of this kernel has no member %s", m.record, m.name))
		}
		*m.off = off
	}
	return at, errors.Join(errs...)
}

// Offsets in a Task, which ends at the top of the iterator's stack frame.
const (
	taskTID = -24 + 4*iota
	taskPID
	taskParent
	taskNumber
	taskSignal
	taskSize = 24
)

// And in the rest of the frame.
const (
	iterPointer = -32
	iterLevel   = -40
	upidSize    = 16 // struct upid, of which a struct pid has one for each level
)

// iterator makes a program that writes a Task for each thread.
func (at taskMembers) iterator() asm.Instructions {
	read := func(to, size int, from asm.Register, off int) asm.Instructions {
		return asm.Instructions{
			asm.Mov.Reg(asm.R3, from),
			asm.Add.Imm(asm.R3, int32(off)),
			asm.Mov.Imm(asm.R2, int32(size)),
			asm.Mov.Reg(asm.R1, asm.RFP),
			asm.Add.Imm(asm.R1, int32(to)),
			asm.FnProbeReadKernel.Call(),
			asm.JNE.Imm(asm.R0, 0, "exit"), // a task that is on its way out
		}
	}
	pointer := func(to asm.Register, from asm.Register, off int) asm.Instructions {
		return append(read(iterPointer, 8, from, off), asm.LoadMem(to, asm.RFP, iterPointer, asm.DWord))
	}
	insns := asm.Instructions{
		asm.LoadMem(asm.R7, asm.R1, 8, asm.DWord), // ctx->task
		asm.JEq.Imm(asm.R7, 0, "exit"),            // the last time
		asm.LoadMem(asm.R1, asm.R1, 0, asm.DWord), // ctx->meta
		asm.LoadMem(asm.R6, asm.R1, 0, asm.DWord), // ctx->meta->seq
	}
	for _, part := range []asm.Instructions{
		read(taskTID, 4, asm.R7, at.pid),
		read(taskPID, 4, asm.R7, at.tgid),
		read(taskSignal, 8, asm.R7, at.signal),
		pointer(asm.R8, asm.R7, at.realParent),
		read(taskParent, 4, asm.R8, at.tgid),
		// The namespace is that of whoever reads.
		{asm.FnGetCurrentTask.Call(), asm.Mov.Reg(asm.R8, asm.R0)},
		pointer(asm.R8, asm.R8, at.threadPID),
		read(iterLevel, 4, asm.R8, at.level),
		pointer(asm.R8, asm.R7, at.threadPID),
		{
			asm.LoadMem(asm.R1, asm.RFP, iterLevel, asm.Word),
			asm.Mul.Imm(asm.R1, upidSize),
			asm.Add.Reg(asm.R8, asm.R1),
		},
		read(taskNumber, 4, asm.R8, at.numbers),
		{
			asm.Mov.Reg(asm.R1, asm.R6),
			asm.Mov.Reg(asm.R2, asm.RFP),
			asm.Add.Imm(asm.R2, taskTID),
			asm.Mov.Imm(asm.R3, taskSize),
			asm.FnSeqWrite.Call(),
			asm.Mov.Imm(asm.R0, 0).WithSymbol("exit"),
			asm.Return(),
		},
	} {
		insns = append(insns, part...)
	}
	return insns
}
