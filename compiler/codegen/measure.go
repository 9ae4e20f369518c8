package codegen

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// measuring is the part of a program that measures calls.
type measuring struct {
	element int // index of the probe's element in its map; in the cookie if the kind is multi
	first   int // stack offset of the value of the first call
	again   int // stash offset of the pointer through which an item is read again
}

// report has write write a record for a matching call, or measures the call.
func (p *program) report(write func()) {
	switch p.probe.Measure {
	case compiler.NoMeasure:
		write()
	case compiler.Tables:
		p.tabulate()
	default:
		p.measure()
	}
}

// measure counts a matching call and updates what the probe measures.
func (p *program) measure() {
	done := p.prefix + "measured"
	if p.probe.Measure == compiler.Durations {
		p.keepTime() // the first call takes no longer than others, and its time is its end
	}
	p.step("count it as %s", compiler.CounterMatched)
	p.counters(done)
	p.add(compiler.CounterMatched.Offset())
	p.keepFirst(done)
	switch p.probe.Measure {
	case compiler.Durations, compiler.Values:
		p.sample(done)
	case compiler.Changes:
		p.compare(done)
	}
	p.label(done)
}

// keepFirst stores the value of the first matching call, unless that has been
// done. R0 points to the counters. Among calls on several CPUs, or in
// interrupts, the first is the one whose value is inserted first.
func (p *program) keepFirst(done string) {
	keep, kept := p.prefix+"first", p.prefix+"counted"
	p.emit(asm.LoadMem(asm.R1, asm.R0, int16(compiler.CounterKept.Offset()), asm.DWord), asm.JEq.Imm(asm.R1, 0, keep))
	p.label(kept)
	p.later(keep, func() {
		p.step("it is the first one on this CPU")
		p.emit(asm.Mov.Reg(rOut, asm.R0), asm.Mov.Imm(asm.R1, 0))
		for at := 0; at < compiler.FirstSize; at += 8 {
			p.emit(asm.StoreMem(asm.RFP, int16(p.first+at), asm.R1, asm.DWord))
		}
		p.firstNumber()
		p.clock(asm.R0)
		p.emit(asm.StoreMem(asm.RFP, int16(p.first+compiler.FirstTime), asm.R0, asm.DWord))
		p.step("keep it, unless there is one on another CPU")
		p.loadNumber()
		p.emit(asm.StoreMem(asm.RFP, spKey, asm.R0, asm.Word))
		p.insert(compiler.FirstMap, spKey, p.first)
		inserted := p.fresh("inserted")
		p.emit(
			asm.JEq.Imm(asm.R0, 0, inserted),
			asm.JNE.Imm32(asm.R0, eexist, kept), // the map is in use: a later call may be stored
		)
		p.label(inserted)
		p.emit(asm.Mov.Imm(asm.R1, 1), asm.StoreMem(rOut, int16(compiler.CounterKept.Offset()), asm.R1, asm.DWord), asm.Ja.Label(kept))
	})
}

// eexist is the error for an existing key. Before 6.4 it has 32 bits in R0.
const eexist = -17

// firstNumber stores the number of the first call, if there is one.
func (p *program) firstNumber() {
	v := p.probe.First
	if v == nil {
		return
	}
	p.step("%s", v.Name)
	unreadable := p.fresh("unreadable")
	p.number64(v, unreadable)
	p.emit(
		asm.StoreMem(asm.RFP, int16(p.first+compiler.FirstValue), asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreMem(asm.RFP, int16(p.first+compiler.FirstRead), asm.R1, asm.DWord),
	)
	if p.refers(unreadable) {
		p.label(unreadable)
	}
}

// number64 loads the number that a value is, or was at entry, into R1.
func (p *program) number64(v *compiler.Value, unreadable string) {
	if slot, fault, kept := p.keptAt(v); kept {
		p.emit(
			asm.LoadMem(asm.R1, rStash, fault, asm.Byte),
			asm.JNE.Imm(asm.R1, 0, unreadable),
			asm.LoadMem(asm.R1, rStash, slot, asm.DWord),
		)
		return
	}
	if at := p.saved[v]; at != 0 {
		p.emit(asm.LoadMem(asm.R1, asm.RFP, int16(at), asm.DWord))
		return
	}
	p.readScalar(v, p.loads.Read(v), true, unreadable)
}

// keptAt returns the offsets from rStash of the slot of a value and of its fault.
func (p *program) keptAt(v *compiler.Value) (slot, fault int16, ok bool) {
	origin, ok := p.keptFrom()
	i := slices.Index(p.event.Kept(), v)
	if !ok || i < 0 {
		return 0, 0, false
	}
	l := &p.event.Layout
	return int16(l.Slots[i].Off - origin), int16(l.Faults + i - origin), true
}

// keptFrom returns the offset in the record of what rStash points to, if it has what
// was kept from entry, or from the beginning of a span.
func (p *program) keptFrom() (origin int, ok bool) {
	switch {
	case p.probe.Ends():
		return p.span.origin, true
	case p.stash != nil && p.stash.event != nil:
		return p.stash.origin, true
	}
	return 0, false
}

// elementAt points R0 to the probe's element in a map.
func (p *program) elementAt(name, missing string) {
	if p.kind.Multi() {
		p.emit(asm.Mov.Reg(asm.R1, rContext), asm.FnGetAttachCookie.Call(),
			asm.LSh.Imm(asm.R0, 64-cookieJump), asm.RSh.Imm(asm.R0, 64-cookieJump+cookieElement))
		p.emit(asm.StoreMem(asm.RFP, spKey, asm.R0, asm.Word))
	} else {
		p.emit(asm.StoreImm(asm.RFP, spKey, int64(p.element), asm.Word))
	}
	p.lookup(name, spKey, missing)
}

// cookieElement is the first bit of the index of a probe's element in a link's
// cookie. The number of the event is in the bits below.
const cookieElement = 32

// countedIn returns the label of code that adds one to a counter of the probe's
// element and jumps to done.
func (p *program) countedIn(name, hint string, counter int, done string) string {
	label := p.fresh(hint)
	p.later(label, func() {
		p.step("count it as %s", hint)
		p.elementAt(name, done)
		p.add(counter)
		p.emit(asm.Ja.Label(done))
	})
	return label
}

// measures reports whether one of the probes is measured.
func measures(probes []*compiler.Probe) bool {
	return slices.ContainsFunc(probes, func(p *compiler.Probe) bool { return p.Measure != compiler.NoMeasure })
}

// mostHistograms limits the memory of histograms on each CPU to 32 or 64 MiB.
const mostHistograms = 4096

// addMeasures adds the maps of measures and numbers the elements of probes.
func (u *generator) addMeasures(probes []*compiler.Probe) error {
	var values, changes, size int
	for _, p := range probes {
		switch p.Measure {
		case compiler.Values, compiler.Durations:
			u.Elements[p] = values
			values++
			size = max(size, compiler.SamplesSize+compiler.HistogramSize)
			if p.Signed() {
				size = compiler.SamplesSize + 2*compiler.HistogramSize
			}
		case compiler.Changes:
			u.Elements[p] = changes
			changes++
		}
	}
	if values > mostHistograms {
		return fmt.Errorf("%d functions would have a histogram each, and %d is the limit: name fewer", values, mostHistograms)
	}
	if values > 0 {
		u.addMap(compiler.ValuesMap, ebpf.PerCPUArray, 4, size, values)
	}
	if changes > 0 {
		u.addMap(compiler.ChangesMap, ebpf.PerCPUArray, 4, compiler.ChangesSize, changes)
	}
	return nil
}

// addFirst adds the map of the first calls.
func (u *generator) addFirst(probes []*compiler.Probe) {
	if slices.ContainsFunc(probes, func(p *compiler.Probe) bool { return p.Measure != compiler.NoMeasure && p.Measure != compiler.Tables }) {
		u.addMap(compiler.FirstMap, ebpf.Hash, 4, compiler.FirstSize, len(u.Events))
	}
}
