package codegen

import (
	"fmt"
	"math/bits"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// newCounterLayout returns a layout with a slot for each CPU of each event, or
// fewer.
func newCounterLayout(events, cpus int) (compiler.CounterLayout, error) {
	l := compiler.CounterLayout{Events: events, Slots: slotsOf(cpus)}
	for l.Size() > compiler.MostCounters && l.Slots > 1 {
		l.Slots /= 2
	}
	if l.Size() > compiler.MostCounters {
		return l, fmt.Errorf("%d kinds of events would be counted, and %d is the limit: name fewer functions", events, compiler.MostCounters/compiler.SlotSize-1)
	}
	return l, nil
}

// countEvents returns the number of events of the probes.
func countEvents(probes []*compiler.Probe) (n int) {
	if chained := len(probes) > 0 && probes[0].Chain != nil; chained && measures(probes) {
		return 1
	}
	for _, p := range probes {
		if p.OnEntry {
			n++
		}
		if p.OnReturn {
			n++
		}
	}
	return n
}

// slotsOf returns the number of slots for a number of CPUs: a power of two, so that a mask
// keeps the number of a CPU below it.
func slotsOf(cpus int) int { return 1 << bits.Len(uint(max(cpus, 1)-1)) }

// controlWord points a register to one of the words before the slots.
func controlWord(reg asm.Register, word uint32) asm.Instruction {
	return asm.LoadMapValue(reg, 0, word).WithReference(compiler.CountersMap)
}

// loadNumber loads the number of the event into R0.
func (p *program) loadNumber() {
	if !p.numbered() {
		p.emit(asm.Mov.Imm(asm.R0, int32(p.number)))
		return
	}
	p.emit(asm.Mov.Reg(asm.R1, rContext), asm.FnGetAttachCookie.Call())
	if p.number != 0 {
		p.emit(asm.Add.Imm(asm.R0, int32(p.number)))
	}
}

// numbered reports whether the cookie has the number of the event, or of one
// before it.
func (p *program) numbered() bool { return p.kind.Multi() && !p.fixed }

// count adds one to a counter of the event, and jumps to next.
func (p *program) count(counter compiler.Counter, next string) {
	p.step("count it as %s", counter)
	p.counters(next)
	p.add(counter.Offset())
	p.emit(asm.Ja.Label(next))
}

// counters points R0 to the slot of the event and of this CPU.
func (p *program) counters(missing string) {
	first := p.layout.At(p.number, 0)
	if p.numbered() {
		p.loadNumber()
		p.emit(asm.StoreMem(asm.RFP, spKey, asm.R0, asm.Word))
		first = p.layout.At(0, 0)
	}
	p.emit(
		asm.FnGetSmpProcessorId.Call(),
		asm.And.Imm(asm.R0, int32(p.layout.Slots-1)),
		asm.LSh.Imm(asm.R0, compiler.SlotBits),
	)
	if p.numbered() {
		p.emit(
			asm.LoadMem(asm.R1, asm.RFP, spKey, asm.Word),
			asm.JGE.Imm(asm.R1, int32(p.layout.Events), missing), // for the verifier
			asm.LSh.Imm(asm.R1, int32(compiler.SlotBits+bits.Len(uint(p.layout.Slots-1)))),
			asm.Add.Reg(asm.R0, asm.R1),
		)
	}
	p.emit(asm.LoadMapValue(asm.R1, 0, uint32(first)).WithReference(compiler.CountersMap), asm.Add.Reg(asm.R0, asm.R1))
}

// add adds one to the word at an offset from what R0 points to.
func (p *program) add(off int) {
	p.emit(asm.Mov.Imm(asm.R1, 1), asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, int16(off)))
}

// addBegun adds to a counter of the beginnings of the program's span.
func (p *program) addBegun(counter compiler.Counter, n int32) {
	p.step("%s: %+d", counter, n)
	p.of(p.span.begin.Number, func() { p.counters(p.exitLabel()) })
	p.emit(asm.Mov.Imm(asm.R1, n), asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, int16(counter.Offset())))
}

// of has generate write code that counts for the event with this number.
func (p *program) of(number int, generate func()) {
	own := p.number
	p.number = number
	generate()
	p.number = own
}

// counted returns the label of code that counts and then jumps to next.
func (p *program) counted(hint string, counter compiler.Counter, next string) string {
	label, number := p.fresh(hint), p.number
	p.later(label, func() { p.of(number, func() { p.count(counter, next) }) })
	return label
}

// counting is the part of a program that counts calls by their fate.
type counting struct {
	fates    []int  // numbers of the events whose fate a rejection decides
	rejected func() // counts a rejected call, and continues
	known    bool   // whether the filter has stored the ids of the process
	layout   compiler.CounterLayout
}

// decides adds an event whose fate a rejection on this side decides: nothing more is
// learnt about the call at return.
func (p *program) decides(ev *compiler.EventType) {
	p.fates = append(p.fates, p.number+ev.Number-p.event.Number)
}

func (u *generator) addBarrier(opts options) {
	if !opts.CountCalls && !opts.ClearTables {
		return
	}
	inner := u.addMap(compiler.BarrierInner, ebpf.Array, 4, 4, 1)
	u.addMap(compiler.BarrierMap, ebpf.ArrayOfMaps, 4, 4, 1).InnerMap = inner.Copy()
}

// beginCounting leaves if counting has ended, and defers the code that counts
// rejections.
func (p *program) beginCounting() {
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
	p.forget(p.unkept())
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
	next := p.fresh("matched")
	p.count(compiler.CounterMatched, next)
	p.label(next)
}

// countEach adds one to a counter of each event whose fate is decided.
func (p *program) countEach(counter compiler.Counter, next string) {
	for i, n := range p.fates {
		p.of(n, func() {
			if i == len(p.fates)-1 {
				p.count(counter, next)
				return
			}
			more := p.fresh("also")
			p.count(counter, more)
			p.label(more)
		})
	}
}
