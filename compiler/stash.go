package compiler

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// stash keeps the entry values of calls that are under way. Its key is the
// address of the call's frame, which no other call of the function has at the
// same time, whatever recursion, preemption or migration does. A value is the
// run of bytes of the record from the start time to the last entry slot.
type stash struct {
	event  *Event // the one at return
	calls  string // map from frame address to value
	zeroes string // array of one value of zeroes, to insert
	origin int    // offset of the run in the record
	size   int    // of the run
	start  int    // offset in what is kept of the time at entry
	flags  int    // and of the outcomes of tests at entry
	again  int    // and of room for the bytes of an item at return
}

const (
	// callsInFlight is the number of calls that a stash has room for.
	callsInFlight = 10240
	// preallocated bounds the memory of a stash whose elements must all be
	// allocated beforehand.
	preallocated = 48 << 20
	// smallStash is the size up to which a value is put together on the
	// stack, which saves two lookups.
	smallStash = 128
)

// addStash makes the maps. The programs of many functions share theirs.
func (u *Unit) addStash(i int, ev *Event, kind Kind, opts Options) *stash {
	l := &ev.Layout
	s := &stash{event: ev, origin: l.Faults, start: l.Start, flags: l.Flags}
	end := l.Faults
	for _, extra := range []int{l.Flags, l.Start} { // they come before the faults
		if extra != 0 {
			s.origin = extra
			end = max(end, extra+8)
		}
	}
	for _, slot := range l.Slots[:len(ev.kept())] {
		end = max(end, align8(max(slot.Off+8, slot.Data+slot.Cap)))
	}
	s.size = end - s.origin
	if v := ev.Probe.Measured; ev.Probe.Measure == Changes && v.Scalar == nil {
		s.again = s.size
		s.size += align8(l.Slots[0].Cap)
	}
	s.start -= s.origin
	s.flags -= s.origin
	s.calls = fmt.Sprintf("calls_%d", i)
	if kind.Multi() {
		s.calls = fmt.Sprintf("calls%d", s.size)
	}
	u.Collection.Maps[s.calls] = callsMap(s.calls, s.size, opts.Features)
	if s.size > smallStash {
		s.zeroes = u.addZeroes(s.size)
	}
	return s
}

// addZeroes makes an array of one value of zeroes.
func (u *Unit) addZeroes(size int) string {
	name := fmt.Sprintf("zeroes%d", size)
	u.Collection.Maps[name] = &ebpf.MapSpec{
		Name: name, Type: ebpf.Array, KeySize: 4, ValueSize: uint32(size), MaxEntries: 1,
	}
	return name
}

// callsMap holds something for each call that is under way.
func callsMap(name string, size int, f Features) *ebpf.MapSpec {
	m := &ebpf.MapSpec{Name: name, Type: ebpf.Hash, KeySize: 8, ValueSize: uint32(size), MaxEntries: callsInFlight}
	if f.RuntimeAlloc {
		m.Flags = noPrealloc
	} else {
		m.MaxEntries = uint32(min(callsInFlight, preallocated/size))
	}
	return m
}

// noPrealloc is BPF_F_NO_PREALLOC.
const noPrealloc = 1

// kept are the items that are kept from entry until return.
func (ev *Event) kept() []*Value {
	if ev.Kind != CallEvent {
		return nil
	}
	return ev.Items[:len(ev.Probe.Entry)]
}

// loadFrame puts the address of the call's frame into reg: the same number in
// the entry and in the return program.
func (p *program) loadFrame(reg asm.Register) {
	if p.kind.trampoline() {
		p.emit(asm.Mov.Reg(reg, rContext))
		return
	}
	p.emit(asm.LoadMem(reg, rContext, p.opts.Arch.SP, asm.DWord))
	if p.side == AtReturn {
		p.emit(asm.Add.Imm(reg, int32(-p.opts.Arch.RetSP)))
	}
}

// frame stores the key of the call in the stash: its frame address. Where
// functions share a stash, their number takes the place of the upper 16 bits,
// which are the same in all kernel addresses: a function that ends in a jump to
// another one shares its frame with it.
func (p *program) frame() {
	p.step("frame address")
	if !p.kind.Multi() {
		p.loadFrame(asm.R1)
		p.emit(asm.StoreMem(asm.RFP, spFrame, asm.R1, asm.DWord))
		return
	}
	p.emit(asm.Mov.Reg(asm.R1, rContext), asm.FnGetAttachCookie.Call(), asm.LSh.Imm(asm.R0, 48))
	p.loadFrame(asm.R1)
	p.emit(asm.Xor.Reg(asm.R1, asm.R0), asm.StoreMem(asm.RFP, spFrame, asm.R1, asm.DWord))
}

// lookup points rStash to the call's entry; a call without one did not match
// at entry, or began before it could be seen.
func (p *program) lookup(s *stash) {
	p.step("what was kept of this call")
	missing := p.exitLabel()
	if len(p.probe.EntryTests) == 0 {
		missing = p.prefix + p.fresh("unpaired")
		p.later(missing, func() {
			p.leaveOwn(p.exitLabel()) // nothing is kept of ksnoop's own calls
			p.count(counterUnpaired, p.exitLabel())
		})
	}
	p.find(s, rStash, missing)
	p.found = true
}

func (p *program) find(s *stash, reg asm.Register, missing string) {
	p.findCall(s.calls, spFrame, reg, missing)
}

// findCall looks for a call by the frame address at a stack offset.
func (p *program) findCall(calls string, at int, reg asm.Register, missing string) {
	p.emit(mapPtr(asm.R1, calls))
	p.move(asm.R2, asm.RFP, at)
	p.emit(asm.FnMapLookupElem.Call(), asm.JEq.Imm(asm.R0, 0, missing))
	p.move(reg, asm.R0, 0)
}

// smallCopy is the size up to which words are copied one by one.
const smallCopy = 64

// copyStash copies the run of bytes into the record.
func (p *program) copyStash(s *stash) {
	p.step("values kept at entry")
	if s.size <= smallCopy {
		for i := 0; i < s.size; i += 8 {
			p.emit(
				asm.LoadMem(asm.R1, rStash, int16(i), asm.DWord),
				asm.StoreMem(rOut, p.out(s.origin+i), asm.R1, asm.DWord),
			)
		}
		return
	}
	p.move(asm.R1, rOut, s.origin-p.origin)
	p.emit(
		asm.Mov.Imm(asm.R2, int32(s.size)),
		asm.Mov.Reg(asm.R3, rStash),
		asm.FnProbeReadKernel.Call(),
	)
}

// drop removes the call's entry.
func (p *program) drop() {
	p.label(p.unshown())
	p.step("forget the call")
	p.forget()
}

// forget removes the call's entry; R0 is 0 if there was one.
func (p *program) forget() { p.delete(p.stash.calls) }

func (p *program) delete(calls string) {
	p.emit(mapPtr(asm.R1, calls))
	p.move(asm.R2, asm.RFP, spFrame)
	p.emit(asm.FnMapDeleteElem.Call())
}
