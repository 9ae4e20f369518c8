package runtime

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
)

// Process returns the kernel's id of the process that has this number in
// ksnoop's pid namespace. It returns an error if there is no such process, or if the
// number is that of another thread of one: these errors are ESRCH.
func (k *Kernel) Process(number uint32) (uint32, error) {
	tasks, err := k.Tasks()
	if err != nil {
		return 0, err
	}
	t, ok := findTask(tasks, number)
	switch {
	case !ok:
		return 0, noProcess("process %d does not exist: --comm NAME traces processes by their name, also those to come", number)
	case t.TID != t.PID:
		return 0, noProcess("%d is a thread, not a process: --tid traces a single thread", number)
	}
	return t.PID, nil
}

// Thread returns the kernel's id of a thread, as [Kernel.Process] does. It returns an
// error if there is no such thread.
func (k *Kernel) Thread(number uint32) (uint32, error) {
	tasks, err := k.Tasks()
	if err != nil {
		return 0, err
	}
	t, ok := findTask(tasks, number)
	if !ok {
		return 0, noProcess("thread %d does not exist: --comm NAME traces threads by their name, also those to come", number)
	}
	return t.TID, nil
}

func noProcess(format string, number uint32) error {
	return errnoError{fmt.Errorf(format, number), unix.ESRCH}
}

func findTask(tasks []Task, number uint32) (Task, bool) {
	for _, t := range tasks {
		if t.Number == number {
			return t, true
		}
	}
	return Task{}, false
}

// family returns the main threads of a process and of its descendants, without the
// processes in known.
func family(tasks []Task, root uint32, known map[uint32]bool) []Task {
	children := map[uint32][]Task{}
	var found []Task
	for _, t := range tasks {
		switch {
		case t.TID != t.PID:
		case t.PID == root:
			found = append(found, t)
		default:
			children[t.Parent] = append(children[t.Parent], t)
		}
	}
	for i := 0; i < len(found); i++ { // found grows in the loop
		found = append(found, children[found[i].PID]...)
	}
	return slices.DeleteFunc(found, func(t Task) bool { return known[t.PID] })
}

// Task is a thread of the system, with the kernel's own ids: those of the initial
// pid namespace.
type Task struct {
	TID    uint32
	PID    uint32 // of its process
	Parent uint32 // its parent process
	Number uint32 // of the thread in ksnoop's pid namespace
	Signal uint64 // address of its process's signal_struct
}

// Tasks returns the threads in ksnoop's pid namespace. It asks the kernel by a BPF
// program, as /proc does not show ids outside of the namespace. It needs CAP_BPF and
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
	tasks, err := iterate(link.IterOptions{Program: coll.Programs["tasks"]}, readTasks)
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	return tasks, nil
}

// readTasks decodes the records that the iterator writes.
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

// taskMembers holds the offsets of the members that are read of a task.
type taskMembers struct {
	pid, tgid, signal, realParent, threadPID int // in struct task_struct
	level, numbers                           int // in struct pid
}

// findTaskMembers returns the offsets of the members from a kernel's types.
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

// Offsets in the rest of the stack frame.
const (
	iterPointer = -32
	iterLevel   = -40
	upidSize    = 16 // size of struct upid, of which a struct pid has one for each level
)

// iterator returns a program that writes a Task for each thread.
func (at taskMembers) iterator() asm.Instructions {
	read := func(to, size int, from asm.Register, off int) asm.Instructions {
		return asm.Instructions{
			asm.Mov.Reg(asm.R3, from),
			asm.Add.Imm(asm.R3, int32(off)),
			asm.Mov.Imm(asm.R2, int32(size)),
			asm.Mov.Reg(asm.R1, asm.RFP),
			asm.Add.Imm(asm.R1, int32(to)),
			asm.FnProbeReadKernel.Call(),
			asm.JNE.Imm(asm.R0, 0, "exit"), // a task that is exiting
		}
	}
	pointer := func(to asm.Register, from asm.Register, off int) asm.Instructions {
		return append(read(iterPointer, 8, from, off), asm.LoadMem(to, asm.RFP, iterPointer, asm.DWord))
	}
	insns := iterObject()
	for _, part := range []asm.Instructions{
		read(taskTID, 4, asm.R7, at.pid),
		read(taskPID, 4, asm.R7, at.tgid),
		read(taskSignal, 8, asm.R7, at.signal),
		pointer(asm.R8, asm.R7, at.realParent),
		read(taskParent, 4, asm.R8, at.tgid),
		// The namespace is that of the reader.
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
			asm.Mov.Reg(asm.R2, asm.RFP),
			asm.Add.Imm(asm.R2, taskTID),
			asm.Mov.Imm(asm.R3, taskSize),
		},
		iterWrite(),
	} {
		insns = append(insns, part...)
	}
	return insns
}

// Self returns the process id of this process as BPF programs see it. In a
// container it differs from os.Getpid, so a program is asked.
func Self() (uint32, error) {
	pid, _, err := selfIDs()
	return pid, err
}

// SelfThread returns the id of this thread as BPF programs see it.
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
	if err != nil {
		return 0, 0, selfError(err)
	}
	return uint32(ids >> 32), uint32(ids), nil
}

// selfError explains an error of askSelf. Package ebpf reads procfs before it makes a map.
func selfError(err error) error {
	switch {
	case errors.Is(err, os.ErrNotExist):
		err = errors.New("procfs is not mounted: mount it (mount -t proc proc /proc)")
	case errors.Is(err, unix.EPERM):
		if why := ReadPrivileges().Refusal(); why != "" {
			err = errors.New(why)
		}
	}
	return fmt.Errorf("ask the kernel for the process id of ksnoop: %w", err)
}

// askSelf runs a program that returns the ids of the thread that runs it.
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
