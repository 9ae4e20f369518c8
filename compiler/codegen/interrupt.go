package codegen

import (
	"encoding/binary"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// inInterrupt has the bits of the word at compiler.PreemptCount that are set in an
// NMI, an interrupt, and a softirq that runs; the other bits for softirqs mean that
// they are disabled (include/linux/preempt.h).
const inInterrupt = 0xff0100

// preemptMap has the address of that word for each CPU, and zeroes up to a power of two.
const preemptMap = "preempt_counts"

func (u *generator) addPreempt(opts options) {
	words := opts.Features.PreemptCount.PerCPU
	if opts.Self == 0 || words == nil {
		return
	}
	b := make([]byte, 8*slotsOf(len(words)))
	for i, addr := range words {
		binary.NativeEndian.PutUint64(b[8*i:], addr)
	}
	u.addMap(preemptMap, ebpf.Array, 4, len(b), 1).Contents = []ebpf.MapKV{{Key: uint32(0), Value: b}}
}

// jumpOwn jumps to own if the process in the upper half of R0 is ksnoop. A call in
// an interrupt of ksnoop is not its own: there, the kernel works for others.
func (p *program) jumpOwn(own string) {
	p.emit(asm.RSh.Imm(asm.R0, 32))
	if !p.opts.Features.PreemptCount.Known() {
		p.emit(asm.JEq.Imm(asm.R0, int32(p.opts.Self), own))
		return
	}
	inside, other := p.fresh("inside"), p.prefix+p.fresh("other")
	p.emit(asm.JEq.Imm(asm.R0, int32(p.opts.Self), inside))
	p.label(other)
	p.later(inside, func() {
		p.step("in ksnoop: an interrupt?")
		p.pointPreempt()
		p.readScratch(4)
		p.emit(
			asm.JNE.Imm(asm.R0, 0, own),
			asm.LoadMem(asm.R1, asm.RFP, spScratch, asm.Word),
			asm.And.Imm(asm.R1, inInterrupt),
			asm.JNE.Imm(asm.R1, 0, other),
			asm.Ja.Label(own),
		)
	})
}

// pointPreempt points R3 to the word at compiler.PreemptCount.
func (p *program) pointPreempt() {
	c := p.opts.Features.PreemptCount
	if c.PerCPU == nil {
		p.emit(asm.FnGetCurrentTask.Call())
		p.move(asm.R3, asm.R0, c.Task)
		return
	}
	p.cpu()
	p.emit(
		asm.And.Imm(asm.R0, int32(slotsOf(len(c.PerCPU))-1)), // for the verifier
		asm.LSh.Imm(asm.R0, 3),
		asm.LoadMapValue(asm.R1, 0, 0).WithReference(preemptMap),
		asm.Add.Reg(asm.R1, asm.R0),
		asm.LoadMem(asm.R3, asm.R1, 0, asm.DWord),
	)
}
