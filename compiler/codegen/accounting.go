package codegen

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// accounting is the part of a program that counts calls by their fate.
type accounting struct {
	fates    []int  // numbers of the events whose fate a rejection decides
	rejected func() // counts a rejected call, and continues
	known    bool   // whether the filter has stored the ids of the process
	layout   compiler.CounterLayout
}

// decides adds an event that a rejection on this side ends: nothing more is
// learnt about the call at return.
func (p *program) decides(ev *compiler.EventType) {
	p.fates = append(p.fates, p.number+ev.Number-p.event.Number)
}

func (u *generator) addBarrier(opts options) {
	if !opts.CountCalls {
		return
	}
	inner := &ebpf.MapSpec{Name: compiler.BarrierInner, Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1}
	u.Collection.Maps[compiler.BarrierInner] = inner
	u.Collection.Maps[compiler.BarrierMap] = &ebpf.MapSpec{
		Name: compiler.BarrierMap, Type: ebpf.ArrayOfMaps, KeySize: 4, ValueSize: 4, MaxEntries: 1, InnerMap: inner.Copy(),
	}
}

// beginTally leaves if counting has ended, and defers the code that counts
// rejections.
func (p *program) beginTally() {
	if !p.opts.CountCalls {
		return
	}
	p.step("counting goes on")
	p.emit(
		controlWord(asm.R1, compiler.ControlStopped),
		asm.LoadMem(asm.R1, asm.R1, 0, asm.DWord),
		asm.JNE.Imm(asm.R1, 0, p.outLabel()),
	)
	p.later(p.prefix+"filtered", p.rejected)
	p.later(p.prefix+"foreign", func() { p.countEach(compiler.CounterFiltered, p.outLabel()) })
}

// reject returns the label for a call that is not shown.
func (p *program) reject() string {
	if p.opts.CountCalls && len(p.fates) > 0 {
		return p.prefix + "filtered"
	}
	return p.unshown()
}

// foreign returns the label for a call of another process. Its fate is known at
// entry. Measures do not count such calls at all.
func (p *program) foreign() string {
	if p.opts.CountCalls && p.stash == nil && p.probe.Measure == compiler.NoMeasure {
		return p.prefix + "foreign"
	}
	return p.outLabel()
}

// countRejected counts a rejected call. At return it counts only calls that
// were kept: others were rejected at entry.
func (p *program) countRejected() {
	if p.stash == nil {
		p.leaveSelf()
		p.countEach(compiler.CounterFiltered, p.unshown())
		return
	}
	p.forget(p.exitLabel())
	p.countEach(compiler.CounterFiltered, p.exitLabel())
}

// leaveSelf leaves for ksnoop's own calls if calls are measured. It is needed
// because code that rejects calls comes before program.admit.
func (p *program) leaveSelf() {
	if p.probe.Measure != compiler.NoMeasure && p.stash == nil {
		p.leaveOwn(p.unshown())
	}
}

// leaveOwn jumps to own for ksnoop's own calls.
func (p *program) leaveOwn(own string) {
	if !p.mayBeSelf() {
		return
	}
	p.step("process is not ksnoop")
	if p.known {
		p.emit(asm.LoadMem(asm.R0, asm.RFP, spPIDTID, asm.DWord))
	} else {
		p.emit(asm.FnGetCurrentPidTgid.Call())
	}
	p.jumpOwn(own)
}

// countMatched counts a record that is about to be written.
func (p *program) countMatched() {
	if !p.opts.CountCalls {
		return
	}
	next := p.prefix + p.fresh("matched")
	p.count(compiler.CounterMatched, next)
	p.label(next)
}

// countEach adds one to a counter of each event whose fate is decided.
func (p *program) countEach(counter compiler.Counter, next string) {
	own := p.number
	for i, n := range p.fates {
		p.number = n
		if i == len(p.fates)-1 {
			p.count(counter, next)
			break
		}
		more := p.prefix + p.fresh("also")
		p.count(counter, more)
		p.label(more)
	}
	p.number = own
}
