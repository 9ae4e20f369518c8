package compiler

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// measuring is the part of a program that measures calls.
type measuring struct {
	element int // of the probe in its map; from the cookie if the kind is multi
	first   int // stack offset of what is kept of the first call
	again   int // offset in the stash of the pointer that an item is read through again
}

// reportOrMeasure is what becomes of a call that matches.
func (p *program) reportOrMeasure(items []*Value) {
	if p.probe.Measure == NoMeasure {
		p.write(items)
		return
	}
	p.measure()
}

// measure counts a call that matches and keeps what is wanted of it.
func (p *program) measure() {
	done := p.prefix + "measured"
	p.step("count it as %s", counterNames[counterMatched])
	p.counters(done)
	p.add(counterMatched)
	p.keepFirst(done)
	switch p.probe.Measure {
	case Durations, Values:
		p.sample(done)
	case Changes:
		p.compare(done)
	}
	p.label(done)
}

// keepFirst keeps the value of the first call that matches, if that has not
// been done. R0 points to the counters. Of calls on several CPUs, or in
// interrupts, the first is the one whose value is inserted first.
func (p *program) keepFirst(done string) {
	keep, kept := p.prefix+"first", p.prefix+"counted"
	p.emit(asm.LoadMem(asm.R1, asm.R0, counterKept, asm.DWord), asm.JEq.Imm(asm.R1, 0, keep))
	p.label(kept)
	p.later(keep, func() {
		p.step("it is the first one on this CPU")
		p.emit(asm.Mov.Reg(rOut, asm.R0), asm.Mov.Imm(asm.R1, 0))
		for at := 0; at < firstSize; at += 8 {
			p.emit(asm.StoreMem(asm.RFP, int16(p.first+at), asm.R1, asm.DWord))
		}
		p.firstNumber()
		p.emit(asm.FnKtimeGetNs.Call(), asm.StoreMem(asm.RFP, int16(p.first+firstTime), asm.R0, asm.DWord))
		p.step("keep it, unless there is one on another CPU")
		p.loadNumber()
		p.emit(asm.StoreMem(asm.RFP, spKey, asm.R0, asm.Word), mapPtr(asm.R1, FirstMap))
		p.move(asm.R2, asm.RFP, spKey)
		p.move(asm.R3, asm.RFP, p.first)
		inserted := p.prefix + p.fresh("inserted")
		p.emit(
			asm.Mov.Imm(asm.R4, int32(ebpf.UpdateNoExist)),
			asm.FnMapUpdateElem.Call(),
			asm.JEq.Imm(asm.R0, 0, inserted),
			asm.JNE.Imm(asm.R0, eexist, kept), // the map is in use just now: the next call may be kept
		)
		p.label(inserted)
		p.emit(asm.Mov.Imm(asm.R1, 1), asm.StoreMem(rOut, counterKept, asm.R1, asm.DWord), asm.Ja.Label(kept))
	})
}

// firstNumber stores the number of the first call, if there is one.
func (p *program) firstNumber() {
	v := p.probe.First
	if v == nil {
		return
	}
	p.step("%s", v.Name)
	unread := p.prefix + p.fresh("unread")
	p.number64(v, unread)
	p.emit(
		asm.StoreMem(asm.RFP, int16(p.first+firstValue), asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreMem(asm.RFP, int16(p.first+firstRead), asm.R1, asm.DWord),
	)
	if p.refers(unread) {
		p.label(unread)
	}
}

// number64 loads the number that a value is, or was at entry, into R1.
func (p *program) number64(v *Value, unread string) {
	if slot, fault, kept := p.keptAt(v); kept {
		p.emit(
			asm.LoadMem(asm.R1, rStash, fault, asm.Byte),
			asm.JNE.Imm(asm.R1, 0, unread),
			asm.LoadMem(asm.R1, rStash, slot, asm.DWord),
		)
		return
	}
	if at := p.saved[v]; at != 0 {
		p.emit(asm.LoadMem(asm.R1, asm.RFP, int16(at), asm.DWord))
		return
	}
	p.readScalar(v, p.direct(v), true, unread)
}

// keptAt is where the stash has the slot of a value, and its fault.
func (p *program) keptAt(v *Value) (slot, fault int16, ok bool) {
	if p.stash == nil || p.stash.event == nil {
		return 0, 0, false
	}
	for i, kept := range p.event.kept() {
		if kept == v {
			l := &p.event.Layout
			return int16(l.Slots[i].Off - p.stash.origin), int16(l.Faults + i - p.stash.origin), true
		}
	}
	return 0, 0, false
}

// elementAt points R0 to the probe's element in a map.
func (p *program) elementAt(name, missing string) {
	if p.kind.Multi() {
		p.emit(asm.Mov.Reg(asm.R1, rContext), asm.FnGetAttachCookie.Call(), asm.RSh.Imm(asm.R0, cookieElement))
		p.emit(asm.StoreMem(asm.RFP, spKey, asm.R0, asm.Word))
	} else {
		p.emit(asm.StoreImm(asm.RFP, spKey, int64(p.element), asm.Word))
	}
	p.emit(mapPtr(asm.R1, name))
	p.move(asm.R2, asm.RFP, spKey)
	p.emit(asm.FnMapLookupElem.Call(), asm.JEq.Imm(asm.R0, 0, missing))
}

// cookieElement is the bit of a link's cookie that the index of a probe's
// element begins at; the event is below.
const cookieElement = 32

// countedIn is the label of code that adds one to a counter of the probe's
// element and goes on.
func (p *program) countedIn(name, hint string, counter int, done string) string {
	label := p.prefix + p.fresh(hint)
	p.later(label, func() {
		p.step("count it as %s", hint)
		p.elementAt(name, done)
		p.add(counter)
		p.emit(asm.Ja.Label(done))
	})
	return label
}
