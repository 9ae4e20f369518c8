package codegen

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// stash describes what is kept of a function's calls from entry until return:
// after the tag, the run of bytes of the record from the start time to the last
// entry slot, and then room for what is read again at return. It is in a slot of the
// thread, or in a map of large values.
type stash struct {
	event  *compiler.EventType // event at return
	origin int                 // offset of the tag in the record
	size   int                 // size of the tag and the run
	start  int                 // offset in the stash of the time at entry
	flags  int                 // offset of the outcomes of conditions at entry
	// operands is the offset of the numbers that others are computed from at return,
	// see [compiler.Layout]; 0 if there are none.
	operands int
	again    int // offset of the room for the bytes of an item at return
	run      int // size of the tag and the run alone
	diffs    map[*compiler.Value]diffRoom
	class    int // class of a large value; 0 if it fits into a slot
	room     int // size of a large value in bytes
}

// tagSize is the size of the tag in bytes.
const tagSize = 8

// addStash decides what is kept for an event at return.
func (u *generator) addStash(ev *compiler.EventType) *stash {
	l := &ev.Layout
	s := &stash{event: ev, origin: l.Faults, start: l.Start, flags: l.Outcomes}
	end := l.Faults
	if l.Operands != 0 {
		s.origin, end = l.Operands, l.Operands+8+8*len(ev.Probe.Operands)
	}
	for _, extra := range []int{l.Outcomes, l.Start} { // they come before the faults
		if extra != 0 {
			s.origin = extra
			end = max(end, extra+8)
		}
	}
	for _, slot := range l.Slots[:len(ev.Kept())] {
		end = max(end, compiler.Align8(max(slot.Off+8, slot.Data+slot.Cap)))
	}
	s.origin -= tagSize
	s.size = end - s.origin
	s.run = s.size
	s.placeDiffs()
	if v := ev.Probe.Measured; ev.Probe.Measure == compiler.Changes && v.Scalar == nil {
		s.again = s.size
		s.size += compiler.Align8(l.Slots[0].Cap)
	}
	s.start -= s.origin
	s.flags -= s.origin
	if l.Operands != 0 {
		s.operands = l.Operands - s.origin
	}
	u.stashes = append(u.stashes, s)
	return s
}

// own returns the stash of the calls of the program's function.
func (p *program) own() *stash {
	if p.keeps != nil {
		return p.keeps
	}
	return p.stash
}

// keep stores the entry values that the return side will need.
func (p *program) keep(s *stash) {
	p.frame()
	p.event = s.event
	p.begun(s)
	p.origin = s.origin
	if start := s.event.Layout.Start; start != 0 {
		p.clock(asm.R0)
		p.emit(asm.StoreMem(rOut, p.out(start), asm.R0, asm.DWord))
	}
	if flags := s.event.Layout.Outcomes; flags != 0 {
		p.copyWord(rOut, p.out(flags), asm.RFP, spFlags)
	}
	if s.origin+s.run > s.event.Layout.Faults {
		p.clearFaults()
	}
	p.capture(s.event.Kept())
	p.keepOperands(s, s.event.Kept())
}

// begun points rOut to the memory in which the call is kept. It contains the
// bytes of another call, or zeroes if the value is large.
func (p *program) begun(s *stash) {
	full := p.noRoom()
	p.take(full)
	if s.class == 0 {
		return
	}
	if p.publishes() {
		p.emit(asm.StoreMem(asm.RFP, spSpill, rOut, asm.DWord))
	}
	unkept := p.fresh("unkept")
	p.step("%d bytes for the call", s.room)
	p.emit(asm.FnGetCurrentTask.Call(), asm.StoreMem(asm.RFP, spTask, asm.R0, asm.DWord))
	p.insertZeroes(bigMap(s.room), spTask, s.room, ebpf.UpdateAny, unkept)
	p.emit(asm.JNE.Imm(asm.R0, 0, unkept))
	p.lookup(bigMap(s.room), spTask, unkept)
	p.emit(asm.Mov.Reg(rOut, asm.R0))
	p.later(unkept, func() {
		p.emit(asm.Mov.Imm(asm.R1, 0), asm.StoreMem(rOut, 0, asm.R1, asm.DWord), asm.Ja.Label(full))
	})
}

// findKept points reg to the stash entry of the call with the tag at a stack
// offset.
func (p *program) findKept(s *stash, reg asm.Register, tag int, missing string) {
	p.find(reg, tag, missing)
	if s.class == 0 {
		return
	}
	p.copyWord(asm.RFP, spBig+8, asm.RFP, int16(tag))
	p.bigCall(s, spBig, asm.FnMapLookupElem)
	p.emit(asm.JEq.Imm(asm.R0, 0, missing), asm.Mov.Reg(reg, asm.R0))
}

// bigCall calls a helper for the large value of the current thread whose tag
// follows the stack offset.
func (p *program) bigCall(s *stash, key int, fn asm.BuiltinFunc) {
	p.emit(asm.FnGetCurrentTask.Call(), asm.StoreMem(asm.RFP, int16(key), asm.R0, asm.DWord))
	p.callMap(fn, bigMap(s.room), key)
}

// recall points rStash to the stash entry of the call. A call without one did
// not match at entry, or began before the probe was attached.
func (p *program) recall(s *stash) {
	p.step("what was kept of this call")
	missing := p.exitLabel()
	if p.countsUnpaired() {
		missing = p.fresh("unpaired")
		p.later(missing, func() {
			p.leaveOwn(p.exitLabel()) // ksnoop's own calls are not kept
			p.returned()
			p.count(compiler.CounterUnpaired, p.exitLabel())
		})
	}
	p.findKept(s, rStash, spTag, missing)
	p.found = true
}

// smallCopy is the largest size in bytes that is copied word by word.
const smallCopy = 128

// copyStash copies the run of bytes into the record.
func (p *program) copyStash(s *stash) {
	p.step("values kept at entry")
	p.copyKept(s.origin+tagSize, rStash, tagSize, s.run-tagSize)
}

// copyKept copies bytes from an offset from the register kept to one in the record.
func (p *program) copyKept(to int, kept asm.Register, from, size int) {
	if size <= smallCopy && from+size <= compiler.MaxStore {
		for i := 0; i < size; i += 8 {
			p.copyWord(rOut, p.out(to+i), kept, int16(from+i))
		}
		return
	}
	p.move(asm.R1, rOut, to-p.origin)
	p.emit(asm.Mov.Imm(asm.R2, int32(size)))
	p.move(asm.R3, kept, from)
	p.emit(asm.FnProbeReadKernel.Call())
}

// dropUnfound forgets a call that is rejected before its stash entry has been
// looked up.
func (p *program) dropUnfound() {
	p.later(p.prefix+"dropunfound", func() {
		p.forget(p.unkept())
		p.emit(asm.Ja.Label(p.exitLabel()))
	})
}

// drop forgets the call at rStash.
func (p *program) drop() {
	p.label(p.prefix + "drop")
	p.step("forget the call")
	if p.stash.class != 0 {
		p.forget(p.exitLabel())
		return
	}
	p.emit(asm.Mov.Imm(asm.R1, 0), asm.StoreMem(rStash, 0, asm.R1, asm.DWord))
}

// forget empties the slot of the call, or goes to missing.
func (p *program) forget(missing string) {
	p.find(rStash, spTag, missing)
	p.empty()
}

// empty empties the slot at rStash.
func (p *program) empty() {
	p.emit(asm.Mov.Imm(asm.R1, 0), asm.StoreMem(rStash, 0, asm.R1, asm.DWord))
	if s := p.own(); s.class != 0 {
		p.bigCall(s, spTask, asm.FnMapDeleteElem)
	}
}
