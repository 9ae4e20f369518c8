package codegen

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// addTree adds the map of a process tree and the programs that maintain it.
func (u *generator) addTree(opts options) {
	u.Tree = &compiler.Tree{Root: opts.PID, Self: opts.Self}
	u.addMap(compiler.TreeMap, ebpf.Hash, 4, 8, compiler.TreeRoom)
	u.addCompanion(compiler.ForkTracepoint, "process tree", forked(opts.Tree))
	u.addCompanion(FreeTracepoint, "process tree", left(opts.Tree))
}

// addCompanion adds a program at a tracepoint, which what tells apart from others there.
func (u *generator) addCompanion(tracepoint, what string, insns asm.Instructions) {
	name := fmt.Sprintf("%s on %s (%s)", compiler.TpBTF, tracepoint, what)
	u.Collection.Programs[name] = &ebpf.ProgramSpec{
		Name: tracepoint, Type: ebpf.Tracing, AttachType: attachTypes[compiler.TpBTF], AttachTo: tracepoint,
		Instructions: insns, License: license,
	}
	u.Companions = append(u.Companions, compiler.Companion{Program: name, Tracepoint: tracepoint})
}

// Offsets in the stack frame of the programs of a tree.
const (
	spChild  = -4 // process ids
	spParent = -8
	spSignal = -16
)

// forked adds the children of processes in the tree, before they run
// (kernel_clone in kernel/fork.c).
func forked(t *compiler.Tasks) asm.Instructions {
	c := &code{}
	c.step("%s sched_process_fork(parent, child)", compiler.TpBTF)
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
	c.step("parent is about to start the first process")
	c.emit(
		controlWord(asm.R2, compiler.ControlStarter),
		asm.LoadMem(asm.R2, asm.R2, 0, asm.DWord),
		asm.JEq.Reg(asm.R1, asm.R2, "child"),
	)
	c.step("parent is in the tree")
	c.lookup(compiler.TreeMap, spParent, "stranger")
	c.label("child")
	c.step("add child")
	c.loadSignal(t, asm.R8)
	c.emit(asm.StoreMem(asm.RFP, spSignal, asm.R1, asm.DWord))
	c.move(asm.R3, asm.RFP, spSignal)
	c.emit(asm.Mov.Imm(asm.R4, int32(ebpf.UpdateAny)))
	c.callMap(asm.FnMapUpdateElem, compiler.TreeMap, spChild)
	c.emit(asm.JEq.Imm(asm.R0, 0, "exit"))
	c.step("count it as too many")
	c.emit(
		controlWord(asm.R0, compiler.ControlUnfollowed),
		asm.Mov.Imm(asm.R1, 1),
		asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, 0),
		asm.Ja.Label("exit"),
	)
	// The id of a process may be reused some time before sched_process_free.
	c.label("stranger")
	c.step("forget a process that had the id before")
	c.callMap(asm.FnMapDeleteElem, compiler.TreeMap, spChild)
	c.leave()
	return c.insns
}

// left removes a process when its last thread is freed: unlike after
// sched_process_exit, the process makes no more calls. The thread group leader
// is freed last, though the other threads may outlive it.
func left(t *compiler.Tasks) asm.Instructions {
	c := &code{}
	c.step("%s sched_process_free(p)", compiler.TpBTF)
	c.emit(asm.LoadMem(asm.R8, asm.R1, 0, asm.DWord))
	c.leaveThreads(t, asm.R8)
	c.emit(asm.StoreMem(asm.RFP, spChild, asm.R1, asm.Word))
	c.loadSignal(t, asm.R8)
	c.emit(asm.Mov.Reg(asm.R7, asm.R1))
	c.step("p is in the tree")
	c.lookup(compiler.TreeMap, spChild, "exit")
	c.step("and is not another process that has got its id since")
	c.emit(
		asm.LoadMem(asm.R1, asm.R0, 0, asm.DWord),
		asm.JNE.Reg(asm.R1, asm.R7, "exit"),
	)
	c.step("remove it")
	c.callMap(asm.FnMapDeleteElem, compiler.TreeMap, spChild)
	c.leave()
	return c.insns
}

// leaveThreads leaves unless the task in reg is the leader of its process's
// threads. R1 then has the id of the process.
func (c *code) leaveThreads(t *compiler.Tasks, reg asm.Register) {
	c.step("not just a thread of a process")
	c.emit(
		asm.LoadMem(asm.R1, reg, int16(t.TGID), asm.Word),
		asm.LoadMem(asm.R2, reg, int16(t.PID), asm.Word),
		asm.JNE.Reg(asm.R1, asm.R2, "exit"),
	)
}

// loadSignal loads the address of the task's signal_struct into R1, as a
// number.
func (c *code) loadSignal(t *compiler.Tasks, task asm.Register) {
	c.emit(asm.Mov.Imm(asm.R2, 8))
	c.move(asm.R3, task, t.Signal)
	c.move(asm.R1, asm.RFP, spSignal)
	c.emit(asm.FnProbeReadKernel.Call(), asm.LoadMem(asm.R1, asm.RFP, spSignal, asm.DWord))
}

func (c *code) leave() {
	c.label("exit")
	c.step("done")
	c.emit(asm.Mov.Imm(asm.R0, 0), asm.Return())
}
