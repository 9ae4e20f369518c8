package compiler

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// accounting is the part of a program that counts what becomes of calls.
type accounting struct {
	fates    []int  // numbers of the events that a rejection decides
	rejected func() // counts a call that is rejected, and goes on
	known    bool   // the filter has stored the ids of the process
}

// decides adds an event whose call ends with a rejection on this side: nothing
// will be known of it at return.
func (p *program) decides(ev *Event) {
	p.fates = append(p.fates, p.number+ev.Number-p.event.Number)
}

// SwitchMap is an array of one word. While it is not 0, programs of a unit with
// [Options].Tally do nothing, so that what they have counted can be read.
const SwitchMap = "switch"

func (u *Unit) addSwitch(opts Options) {
	if opts.Tally {
		u.Collection.Maps[SwitchMap] = &ebpf.MapSpec{Name: SwitchMap, Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1}
	}
}

// beginTally leaves when counting has ended, and puts off the code that counts
// rejections.
func (p *program) beginTally() {
	if !p.opts.Tally {
		return
	}
	p.step("counting goes on")
	p.emit(
		asm.LoadMapValue(asm.R1, 0, 0).WithReference(SwitchMap),
		asm.LoadMem(asm.R1, asm.R1, 0, asm.Word),
		asm.JNE.Imm(asm.R1, 0, p.outLabel()),
	)
	p.later(p.prefix+"filtered", p.rejected)
	p.later(p.prefix+"foreign", func() { p.countEach(counterFiltered, p.outLabel()) })
}

// reject is where a call goes that is not to be shown.
func (p *program) reject() string {
	if p.opts.Tally && len(p.fates) > 0 {
		return p.prefix + "filtered"
	}
	return p.unshown()
}

// foreign is where a call of another process goes. What becomes of it is known
// at entry. Calls that are measured are those of the others alone.
func (p *program) foreign() string {
	if p.opts.Tally && p.stash == nil && p.probe.Measure == NoMeasure {
		return p.prefix + "foreign"
	}
	return p.outLabel()
}

// countRejected counts a call that is rejected. At return that is one which was
// kept: others were rejected at entry.
func (p *program) countRejected() {
	if p.stash == nil {
		p.leaveSelf()
		p.countEach(counterFiltered, p.unshown())
		return
	}
	p.forget()
	p.emit(asm.JNE.Imm(asm.R0, 0, p.exitLabel()))
	p.countEach(counterFiltered, p.exitLabel())
}

// leaveSelf leaves for ksnoop's own calls if the others are measured. Code that
// rejects calls comes before [program.admit].
func (p *program) leaveSelf() {
	if p.probe.Measure != NoMeasure && p.stash == nil {
		p.leaveOwn(p.unshown())
	}
}

// leaveOwn goes to own for ksnoop's own calls.
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
	p.emit(asm.RSh.Imm(asm.R0, 32), asm.JEq.Imm(asm.R0, int32(p.opts.Self), own))
}

// countMatched counts a record that is to be written.
func (p *program) countMatched() {
	if !p.opts.Tally {
		return
	}
	next := p.prefix + p.fresh("matched")
	p.count(counterMatched, next)
	p.label(next)
}

// countEach adds one to a counter of each event that is decided.
func (p *program) countEach(counter int, next string) {
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
