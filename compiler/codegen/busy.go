package codegen

import (
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// busyMap has two words for each probe and CPU. The first is 1 while one of the
// probe's programs runs there, otherwise the frame address of the call that the
// last one ran for. The second is scratch space.
//
// A trampoline skips a program that already runs on the CPU, when an interrupt
// comes and calls the function, too. Of the call in the interrupt it then skips
// the entry or the return, but not both. An entry whose return was skipped
// could be paired with the return of a later call in the same frame whose entry
// was skipped. The word makes both sides skip such a call, except for
// interrupts that come before the program has set it, or after it has released it:
// see program.checkFrame. Kprobes do not need it: they skip both sides
// themselves.
//
// Before Linux 5.12 a trampoline skips nothing. There, the first word grows by 8 for each
// of the programs that run on the CPU, which end in the reverse order. Each has scratch
// space of its own, see program.frameNumber.
const busyMap = "busy"

// busyScratch is the offset of the second word.
const busyScratch = 8

// guarded reports whether the programs of a probe must not use the same memory when
// they interrupt each other on a CPU.
func guarded(p *compiler.Probe, kind compiler.Kind) bool {
	return (kind == compiler.Fentry || kind == compiler.Fexit) && (p.Stash || p.Chain != nil)
}

// skipsSides reports whether one side of a call in an interrupt may be skipped.
func (p *program) skipsSides() bool {
	return guarded(p.probe, p.kind) && p.opts.Features.CountsSkipped
}

func (u *generator) addBusy(probes []*compiler.Probe, opts options) {
	if !slices.ContainsFunc(probes, func(p *compiler.Probe) bool { return guarded(p, p.Attach.Entry) }) {
		return
	}
	scratch := 1
	if !opts.Features.CountsSkipped {
		scratch = compiler.Nesting
	}
	u.addMap(busyMap, ebpf.PerCPUArray, 4, busyScratch+8*scratch, len(probes))
}

// enterBusy sets the word, or leaves if it is set: the kernel has counted the entry that
// it has skipped, or will count the return.
func (p *program) enterBusy() {
	p.busy = p.room(8)
	if !p.opts.Features.CountsSkipped {
		p.enterNested()
		return
	}
	p.step("no program of this function runs on this CPU")
	p.emit(asm.StoreImm(asm.RFP, spKey, int64(p.index), asm.Word))
	p.lookup(busyMap, spKey, p.outLabel())
	p.emit(
		asm.LoadMem(asm.R1, asm.R0, 0, asm.DWord),
		asm.JEq.Imm(asm.R1, 1, p.outLabel()),
		asm.StoreMem(asm.RFP, int16(p.busy), asm.R0, asm.DWord),
		asm.Mov.Imm(asm.R2, 1),
		asm.StoreMem(asm.R0, 0, asm.R2, asm.DWord),
	)
	if p.side == compiler.AtReturn && p.probe.Stacks.Task >= 0 {
		p.checkFrame()
	}
}

// enterNested counts the program in the first word. An interrupt between any two
// instructions leaves the word as it was.
func (p *program) enterNested() {
	p.step("one more program of this function on this CPU")
	p.emit(asm.StoreImm(asm.RFP, spKey, int64(p.index), asm.Word))
	p.lookup(busyMap, spKey, p.outLabel())
	p.emit(asm.StoreMem(asm.RFP, int16(p.busy), asm.R0, asm.DWord))
	p.addNested(8)
}

// addNested adds to the word to which R0 points.
func (p *program) addNested(n int32) {
	p.emit(
		asm.LoadMem(asm.R1, asm.R0, 0, asm.DWord),
		asm.Add.Imm(asm.R1, n),
		asm.StoreMem(asm.R0, 0, asm.R1, asm.DWord),
	)
}

// checkFrame drops what is kept at the frame of a call in an interrupt, if
// since then a program has run for the interrupted context. The interrupt's own
// call was entered later, but its entry was skipped, so what is kept belongs to
// an earlier interrupt whose return was skipped. R1 is the frame address of the
// call that the last program ran for. During an interrupt only calls further
// down its stack run. If such a call of one more interrupt came in between, or if no
// program ran in between, this finds nothing; but then the interrupted call has
// returned, and dropped what was kept above it (program.leaveEnded), unless the earlier
// interrupt came when its program had released the word already.
func (p *program) checkFrame() {
	other, own := p.fresh("other"), p.prefix+p.fresh("own")
	p.emit(asm.JNE.Reg(asm.R1, rContext, other))
	p.label(own)
	p.later(other, func() {
		p.step("another call came between: was it further out than this one?")
		p.emit(
			asm.Mov.Reg(rOut, asm.R1),                              // these registers are used anyway; others would have to be saved for all calls
			asm.StoreMem(asm.R0, busyScratch, rContext, asm.DWord), // read back as a number
			asm.LoadMem(rStash, asm.R0, busyScratch, asm.DWord),
		)
		p.readTaskStack()
		p.emit(
			asm.LoadMem(asm.R1, asm.RFP, spScratch, asm.DWord),
			asm.Mov.Reg(asm.R2, rStash),
			asm.Sub.Reg(asm.R2, asm.R1),
			asm.JLT.Imm(asm.R2, int32(p.probe.Stacks.Size), own), // a call of a task
			asm.Sub.Reg(rStash, rOut),
			asm.JLT.Imm(rStash, int32(p.probe.Stacks.Size), own),
		)
		p.frame()
		p.search(rStash, spTag, own, false) // calls in slots above may go on
		p.empty()
		p.count(compiler.CounterUnpaired, p.exitLabel())
	})
}

// readTaskStack reads the address of the current task's stack to spScratch.
func (p *program) readTaskStack() {
	p.emit(asm.FnGetCurrentTask.Call(), asm.Mov.Reg(asm.R3, asm.R0), asm.Add.Imm(asm.R3, int32(p.probe.Stacks.Task)))
	p.readScratch(8)
}

// leaveBusy releases the word: it stores the frame address of this call.
func (p *program) leaveBusy() {
	if !p.opts.Features.CountsSkipped {
		p.emit(asm.LoadMem(asm.R0, asm.RFP, int16(p.busy), asm.DWord))
		p.addNested(-8)
		return
	}
	p.emit(
		asm.LoadMem(asm.R1, asm.RFP, int16(p.busy), asm.DWord),
		asm.StoreMem(asm.R1, 0, rContext, asm.DWord),
	)
}

// notKept returns the exit label for a call of which nothing could be kept. The
// values that another call has left at its frame must not be taken for its own,
// so the word records that the program ran for another frame.
func (p *program) notKept() string {
	if !p.skipsSides() {
		return p.skipLabel()
	}
	label := p.fresh("unkept")
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

// outLabel returns the exit label for calls that have changed nothing.
func (p *program) outLabel() string {
	if guarded(p.probe, p.kind) {
		return p.prefix + "out"
	}
	return p.skipLabel()
}
