package compiler

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// busyMap has a word for each probe and CPU: 1 while one of the probe's
// programs runs there.
//
// A trampoline skips a program that runs on the CPU already, when an interrupt
// comes and calls the function, too. Of the call in the interrupt it then skips
// the entry, or the return, but not both, and an entry that has lost its return
// could meet the return of a later call in the same frame that has lost its
// entry. The word makes both sides skip such a call. Kprobes need none: they
// skip both sides themselves.
const busyMap = "busy"

// guarded says whether the programs of a probe must not meet on a CPU.
func (p *Probe) guarded(kind Kind) bool {
	return (kind == Fentry || kind == Fexit) && (p.Stash || p.Chain != nil)
}

func (u *Unit) addBusy(probes []*Probe) {
	for _, p := range probes {
		if p.guarded(p.Attach.Entry) {
			u.Collection.Maps[busyMap] = &ebpf.MapSpec{
				Name: busyMap, Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: 8, MaxEntries: uint32(len(probes)),
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
		asm.JNE.Imm(asm.R1, 0, nested),
		asm.StoreMem(asm.RFP, int16(p.busy), asm.R0, asm.DWord),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreMem(asm.R0, 0, asm.R1, asm.DWord),
	)
}

// leaveBusy clears the word.
func (p *program) leaveBusy() {
	p.emit(
		asm.LoadMem(asm.R1, asm.RFP, int16(p.busy), asm.DWord),
		asm.Mov.Imm(asm.R0, 0),
		asm.StoreMem(asm.R1, 0, asm.R0, asm.DWord),
	)
}

// outLabel is the way out for calls that have changed nothing.
func (p *program) outLabel() string {
	if p.probe.guarded(p.kind) {
		return p.prefix + "out"
	}
	return p.skipLabel()
}
