package compiler

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// Names of the maps of a process tree.
const (
	// TreeMap has the processes of the tree: of each, by its id, the address
	// of its signal_struct, which tells it from a later process of that id.
	TreeMap = "tree"
	// TreeFullMap counts in one word the processes that TreeMap had no room
	// for. They and their descendants are not traced.
	TreeFullMap = "tree_full"
)

// ForkTracepoint is where processes are added.
const ForkTracepoint = "sched_process_fork"

// TreeRoom is how many processes a tree can have at once. All the memory is
// taken beforehand: a process must not be left out for a lack of it.
const TreeRoom = 16384

// Tree follows a process and its descendants.
type Tree struct {
	Root uint32 // the process at the root; 0: one that ksnoop is yet to start
	Self uint32 // ksnoop
	// Programs keep the map up to date, and must be attached first.
	Programs []Hook
}

// Hook puts a program that writes no records on a tracepoint.
type Hook struct {
	Program    string // name in Collection
	Tracepoint string
}

// Tasks is where a kernel's struct task_struct has what tells processes apart.
type Tasks struct {
	PID, TGID int // of the thread and of its process
	Signal    int // the pointer to what the threads of a process share
}

// FindTasks finds them in a kernel's types.
func FindTasks(kernel *btf.Spec) (*Tasks, error) {
	t := &Tasks{}
	for name, off := range map[string]*int{"pid": &t.PID, "tgid": &t.TGID, "signal": &t.Signal} {
		at, ok := MemberOffset(kernel, "task_struct", name)
		if !ok {
			return nil, fmt.Errorf("follow processes: struct task_struct of this kernel has no member %s", name)
		}
		*off = at
	}
	return t, nil
}

// addTree makes the maps of a process tree and the programs that keep track of
// it.
func (u *Unit) addTree(opts Options) {
	u.Tree = &Tree{Root: opts.PID, Self: opts.Self}
	u.Collection.Maps[TreeMap] = &ebpf.MapSpec{
		Name: TreeMap, Type: ebpf.Hash, KeySize: 4, ValueSize: 8, MaxEntries: TreeRoom,
	}
	u.Collection.Maps[TreeFullMap] = &ebpf.MapSpec{
		Name: TreeFullMap, Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1,
	}
	u.hook(ForkTracepoint, forked(opts.Tree))
	u.hook("sched_process_free", freed(opts.Tree))
}

func (u *Unit) hook(tracepoint string, insns asm.Instructions) {
	name := fmt.Sprintf("%s on %s (process tree)", TpBTF, tracepoint)
	u.Collection.Programs[name] = &ebpf.ProgramSpec{
		Name: tracepoint, Type: ebpf.Tracing, AttachType: attachTypes[TpBTF], AttachTo: tracepoint,
		Instructions: insns, License: license,
	}
	u.Tree.Programs = append(u.Tree.Programs, Hook{name, tracepoint})
}

// Offsets in the stack frame of the programs of a tree.
const (
	spChild  = -4 // process ids
	spParent = -8
	spSignal = -16
)

// forked adds the children of processes in the tree, before they run
// (kernel_clone in kernel/fork.c).
func forked(t *Tasks) asm.Instructions {
	c := &code{}
	c.step("%s sched_process_fork(parent, child)", TpBTF)
	c.emit(
		asm.LoadMem(asm.R7, asm.R1, 0, asm.DWord),
		asm.LoadMem(asm.R8, asm.R1, 8, asm.DWord),
	)
	c.leaveThreads(t, asm.R8)
	c.emit(
		asm.StoreMem(asm.RFP, spChild, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.R7, int16(t.TGID), asm.Word),
		asm.StoreMem(asm.RFP, spParent, asm.R1, asm.Word),
	)
	c.step("parent is in the tree")
	c.treeCall(asm.FnMapLookupElem, spParent)
	c.emit(asm.JEq.Imm(asm.R0, 0, "stranger"))
	c.step("add child")
	c.loadSignal(t, asm.R8)
	c.emit(asm.StoreMem(asm.RFP, spSignal, asm.R1, asm.DWord))
	c.move(asm.R3, asm.RFP, spSignal)
	c.emit(asm.Mov.Imm(asm.R4, int32(ebpf.UpdateAny)))
	c.treeCall(asm.FnMapUpdateElem, spChild)
	c.emit(asm.JEq.Imm(asm.R0, 0, "exit"))
	c.step("count it as too many")
	c.emit(
		asm.StoreImm(asm.RFP, spParent, 0, asm.Word),
		mapPtr(asm.R1, TreeFullMap),
	)
	c.move(asm.R2, asm.RFP, spParent)
	c.emit(
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "exit"),
		asm.Mov.Imm(asm.R1, 1),
		asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, 0),
		asm.Ja.Label("exit"),
	)
	// An id is free for a new process some time before sched_process_free.
	c.label("stranger")
	c.step("forget a process that had the id before")
	c.treeCall(asm.FnMapDeleteElem, spChild)
	c.leave()
	return c.insns
}

// freed removes a process whose last thread is gone: unlike at
// sched_process_exit, nothing more is called in its name. The leader of its
// threads is the last one to be freed, though the others may outlive it.
func freed(t *Tasks) asm.Instructions {
	c := &code{}
	c.step("%s sched_process_free(p)", TpBTF)
	c.emit(asm.LoadMem(asm.R8, asm.R1, 0, asm.DWord))
	c.leaveThreads(t, asm.R8)
	c.emit(asm.StoreMem(asm.RFP, spChild, asm.R1, asm.Word))
	c.loadSignal(t, asm.R8)
	c.emit(asm.Mov.Reg(asm.R7, asm.R1))
	c.step("p is in the tree")
	c.treeCall(asm.FnMapLookupElem, spChild)
	c.emit(asm.JEq.Imm(asm.R0, 0, "exit"))
	c.step("and is no other process that has got its id since")
	c.emit(
		asm.LoadMem(asm.R1, asm.R0, 0, asm.DWord),
		asm.JNE.Reg(asm.R1, asm.R7, "exit"),
	)
	c.step("remove it")
	c.treeCall(asm.FnMapDeleteElem, spChild)
	c.leave()
	return c.insns
}

// leaveThreads leaves unless the task in reg leads the threads of its process,
// whose id is in R1 then.
func (c *code) leaveThreads(t *Tasks, reg asm.Register) {
	c.step("not just a thread of a process")
	c.emit(
		asm.LoadMem(asm.R1, reg, int16(t.TGID), asm.Word),
		asm.LoadMem(asm.R2, reg, int16(t.PID), asm.Word),
		asm.JNE.Reg(asm.R1, asm.R2, "exit"),
	)
}

// loadSignal puts the address of the task's signal_struct into R1, as a number.
func (c *code) loadSignal(t *Tasks, task asm.Register) {
	c.emit(asm.Mov.Imm(asm.R2, 8))
	c.move(asm.R3, task, t.Signal)
	c.move(asm.R1, asm.RFP, spSignal)
	c.emit(asm.FnProbeReadKernel.Call(), asm.LoadMem(asm.R1, asm.RFP, spSignal, asm.DWord))
}

// treeCall calls a helper for the map of the tree, with a key on the stack.
func (c *code) treeCall(fn asm.BuiltinFunc, key int) {
	c.emit(mapPtr(asm.R1, TreeMap))
	c.move(asm.R2, asm.RFP, key)
	c.emit(fn.Call())
}

func (c *code) leave() {
	c.label("exit")
	c.step("done")
	c.emit(asm.Mov.Imm(asm.R0, 0), asm.Return())
}
