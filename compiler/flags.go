package compiler

import (
	"slices"

	"github.com/cilium/ebpf/asm"
)

// needsEntry says whether a test at return needs what was kept of the entry.
func needsEntry(t Test) bool {
	switch t := t.(type) {
	case *Flag:
		return true
	case *Leaf:
		return t.Value.Base.Builtin == Duration
	case AllOf:
		return slices.ContainsFunc(t, needsEntry)
	case AnyOf:
		return slices.ContainsFunc(t, needsEntry)
	}
	return false
}

// setFlags makes the tests at entry that the return wants to know of.
func (p *program) setFlags() {
	if len(p.probe.Flags) == 0 {
		return
	}
	p.step("outcomes of tests for the return")
	p.setWord(spFlags, 0)
	for _, f := range p.probe.Flags {
		no := p.prefix + p.fresh("unset")
		p.branch(f.Test, outcome{no: no, unread: p.noted(no)})
		p.emit(
			asm.LoadImm(asm.R2, 1<<f.Bit, asm.DWord),
			asm.LoadMem(asm.R1, asm.RFP, spFlags, asm.DWord),
			asm.Or.Reg(asm.R1, asm.R2),
			asm.StoreMem(asm.RFP, spFlags, asm.R1, asm.DWord),
		)
		p.label(no)
	}
	p.step("a fault met")
	p.emit(
		asm.LoadMem(asm.R2, asm.RFP, spFault, asm.DWord),
		asm.LSh.Imm(asm.R2, faultFlag),
		asm.LoadMem(asm.R1, asm.RFP, spFlags, asm.DWord),
		asm.Or.Reg(asm.R1, asm.R2),
		asm.StoreMem(asm.RFP, spFlags, asm.R1, asm.DWord),
	)
}

// faultFlag is the bit of the flags that says that a test at entry met a fault.
const faultFlag = 63

// recallFault notes for the return that a test at entry met a fault.
func (p *program) recallFault() {
	if len(p.probe.Flags) == 0 {
		return
	}
	p.step("a fault met at entry")
	p.emit(
		asm.LoadMem(asm.R1, rStash, int16(p.stash.flags), asm.DWord),
		asm.RSh.Imm(asm.R1, faultFlag),
		asm.StoreMem(asm.RFP, spFault, asm.R1, asm.DWord),
	)
}
