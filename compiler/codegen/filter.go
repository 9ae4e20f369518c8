package codegen

import (
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// filter leaves early for processes that are not traced.
func (p *program) filter() {
	if p.opts.TID != 0 {
		p.identify()
		p.step("thread is %d", p.opts.TID)
		p.emit(asm.Mov.Reg32(asm.R1, asm.R0), asm.JNE.Imm32(asm.R1, int32(p.opts.TID), p.foreign()))
	}
	switch {
	case p.opts.Tree != nil:
		p.inTree()
	case p.opts.PID != 0:
		p.identify()
		p.step("process is %d", p.opts.PID)
		p.emit(asm.RSh.Imm(asm.R0, 32), asm.JNE.Imm(asm.R0, int32(p.opts.PID), p.foreign()))
	}
	if p.opts.Cgroup {
		p.step("thread is in the cgroup")
		p.emit(
			mapPtr(asm.R1, compiler.CgroupMap),
			asm.Mov.Imm(asm.R2, 0),
			asm.FnCurrentTaskUnderCgroup.Call(),
			asm.JNE.Imm(asm.R0, 1, p.foreign()),
		)
	}
	if needsProcess(p.probe) {
		p.identify()
	}
}

// inTree leaves for processes that are not in the tree.
func (p *program) inTree() {
	p.identify()
	p.step("process is in the tree")
	p.emit(asm.RSh.Imm(asm.R0, 32), asm.StoreMem(asm.RFP, spKey, asm.R0, asm.Word))
	p.lookup(compiler.TreeMap, spKey, p.foreign())
}

// needsProcess reports whether a condition concerns the process or thread.
func needsProcess(p *compiler.Probe) bool {
	for l := range p.Leaves() {
		if l.Value.Uses(compiler.PID, compiler.TID) {
			return true
		}
	}
	return false
}

// identify stores the ids of the process and thread. They stay in R0.
func (p *program) identify() {
	p.step("process")
	p.emit(asm.FnGetCurrentPidTgid.Call(), asm.StoreMem(asm.RFP, spPIDTID, asm.R0, asm.DWord))
	p.identified = true
}

// admit leaves for ksnoop's own calls, which are never shown. It comes after
// the conditions, which reject most calls and cost less.
func (p *program) admit() {
	if p.stash != nil || !p.mayBeSelf() {
		if !p.identified && p.showsProcess() {
			p.identify()
		}
		return
	}
	if p.identified {
		p.emit(asm.LoadMem(asm.R0, asm.RFP, spPIDTID, asm.DWord))
	} else {
		p.identify()
	}
	p.step("process is not ksnoop")
	own := p.reject()
	if p.probe.Measure != compiler.NoMeasure {
		own = p.unshown()
	}
	p.jumpOwn(own)
}

// showsProcess reports whether the ids of the process are needed for calls that
// match. Every record has them, and so has what is kept of a span's beginning, whose
// key may have them, too.
func (p *program) showsProcess() bool {
	if p.probe.Measure == compiler.NoMeasure || p.probe.Chain != nil || p.probe.Span != nil {
		return true
	}
	return slices.ContainsFunc(slices.Concat(p.probe.Entry, p.probe.Return, p.probe.Operands), func(v *compiler.Value) bool {
		return v.Uses(compiler.PID, compiler.TID)
	})
}

// mayBeSelf reports whether a call may be one of ksnoop's own, which are not
// traced.
func (p *program) mayBeSelf() bool {
	if p.probe.Watch != nil {
		return false // interrupts write, too, whatever process they are in
	}
	own := p.opts.Self
	return own != 0 && (own != p.opts.PID || p.opts.Tree != nil)
}
