package compiler

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// busyMap has two words for each probe and CPU. The first is 1 while one of the
// probe's programs runs there, else the frame address of the call that the last
// one ran for. The second is for scratch.
//
// A trampoline skips a program that runs on the CPU already, when an interrupt
// comes and calls the function, too. Of the call in the interrupt it then skips
// the entry, or the return, but not both, and an entry that has lost its return
// could meet the return of a later call in the same frame that has lost its
// entry. The word makes both sides skip such a call, but for interrupts that
// come before the program has set it, or after: see [program.checkFrame].
// Kprobes need none: they skip both sides themselves.
const busyMap = "busy"

// guarded says whether the programs of a probe must not meet on a CPU.
func (p *Probe) guarded(kind Kind) bool {
	return (kind == Fentry || kind == Fexit) && (p.Stash || p.Chain != nil)
}

func (u *Unit) addBusy(probes []*Probe) {
	for _, p := range probes {
		if p.guarded(p.Attach.Entry) {
			u.Collection.Maps[busyMap] = &ebpf.MapSpec{
				Name: busyMap, Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: 16, MaxEntries: uint32(len(probes)),
			}
		}
	}
}

// enterBusy sets the word, or leaves if it is set. The kernel has counted the
// entry that it skipped; a return that it will skip is counted here.
func (p *program) enterBusy() {
	p.busy = p.room(8)
	nested := p.outLabel()
	if p.side == AtEntry {
		nested = p.counted("nested", counterUnpaired, p.outLabel())
	}
	p.step("no program of this function runs on this CPU")
	p.emit(asm.StoreImm(asm.RFP, spKey, int64(p.index), asm.Word), mapPtr(asm.R1, busyMap))
	p.move(asm.R2, asm.RFP, spKey)
	p.emit(
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, p.outLabel()),
		asm.LoadMem(asm.R1, asm.R0, 0, asm.DWord),
		asm.JEq.Imm(asm.R1, 1, nested),
		asm.StoreMem(asm.RFP, int16(p.busy), asm.R0, asm.DWord),
		asm.Mov.Imm(asm.R2, 1),
		asm.StoreMem(asm.R0, 0, asm.R2, asm.DWord),
	)
	if p.side == AtReturn && p.probe.Stacks.Task >= 0 {
		p.checkFrame()
	}
}

// checkFrame drops what is kept at the frame of a call in an interrupt, if a
// program has run since for what the interrupt came into. The interrupt's own
// call was entered later, but its entry was skipped: what is kept is of an
// earlier interrupt, whose return was. R1 is the frame address of the call that
// the last program ran for. In an interrupt nothing else runs but calls further
// down its stack. It is not seen if such a call of one more interrupt has come
// between, or if no program has run between.
func (p *program) checkFrame() {
	other, own := p.prefix+p.fresh("other"), p.prefix+p.fresh("own")
	p.emit(asm.JNE.Reg(asm.R1, rContext, other))
	p.label(own)
	p.later(other, func() {
		p.step("another call came between: was it further out than this one?")
		p.emit(
			asm.Mov.Reg(rOut, asm.R1),                    // registers that the program uses anyway: others would cost all calls
			asm.StoreMem(asm.R0, 8, rContext, asm.DWord), // comes back as a number
			asm.LoadMem(rStash, asm.R0, 8, asm.DWord),
			asm.FnGetCurrentTask.Call(),
			asm.Mov.Reg(asm.R3, asm.R0),
			asm.Add.Imm(asm.R3, int32(p.probe.Stacks.Task)),
			asm.Mov.Imm(asm.R2, 8),
		)
		p.move(asm.R1, asm.RFP, spScratch)
		p.emit(
			asm.FnProbeReadKernel.Call(),
			asm.LoadMem(asm.R1, asm.RFP, spScratch, asm.DWord),
			asm.Mov.Reg(asm.R2, rStash),
			asm.Sub.Reg(asm.R2, asm.R1),
			asm.JLT.Imm(asm.R2, int32(p.probe.Stacks.Size), own), // a task's call
			asm.Sub.Reg(rStash, rOut),
			asm.JLT.Imm(rStash, int32(p.probe.Stacks.Size), own),
		)
		p.frame()
		p.forget()
		p.emit(asm.JNE.Imm(asm.R0, 0, own))
		p.count(counterUnpaired, p.exitLabel())
	})
}

// leaveBusy says that the programs of this call have run.
func (p *program) leaveBusy() {
	p.emit(
		asm.LoadMem(asm.R1, asm.RFP, int16(p.busy), asm.DWord),
		asm.StoreMem(asm.R1, 0, rContext, asm.DWord),
	)
}

// notKept is the way out for a call of which nothing could be kept. What another
// call has left over at its frame must not be taken for its own: the word says
// that the program ran for another frame.
func (p *program) notKept() string {
	if !p.probe.guarded(p.kind) {
		return p.skipLabel()
	}
	label := p.prefix + p.fresh("unkept")
	p.later(label, func() {
		p.emit(
			asm.LoadMem(asm.R1, asm.RFP, int16(p.busy), asm.DWord),
			asm.Mov.Imm(asm.R0, 0),
			asm.StoreMem(asm.R1, 0, asm.R0, asm.DWord),
			asm.Ja.Label(p.outLabel()),
		)
	})
	return label
}

// outLabel is the way out for calls that have changed nothing.
func (p *program) outLabel() string {
	if p.probe.guarded(p.kind) {
		return p.prefix + "out"
	}
	return p.skipLabel()
}
