package compiler

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// stash keeps the entry values of calls that are under way. Its key is the
// address of the call's frame, which no other call has at the same time,
// whatever recursion, preemption or migration does. A value is the run of
// bytes of the record from the start time to the last entry slot.
type stash struct {
	calls  string // map from frame address to value
	zeroes string // array of one value of zeroes, to insert
	origin int    // offset of the run in the record
	size   int    // of the run
}

const (
	// callsInFlight is the number of calls that a stash has room for.
	callsInFlight = 10240
	// preallocated bounds the memory of a stash whose elements must all be
	// allocated beforehand.
	preallocated = 16 << 20
)

func (u *Unit) addStash(i int, ev *Event, opts Options) *stash {
	s := &stash{
		calls:  fmt.Sprintf("calls%d", i),
		zeroes: fmt.Sprintf("zeroes%d", i),
		origin: ev.Layout.Start,
	}
	for _, slot := range ev.Layout.Slots[:len(ev.Probe.Entry)] {
		s.size = max(s.size, align8(max(slot.Off+8, slot.Data+slot.Cap))-s.origin)
	}
	calls := &ebpf.MapSpec{
		Name: s.calls, Type: ebpf.Hash, KeySize: 8, ValueSize: uint32(s.size), MaxEntries: callsInFlight,
	}
	if opts.Features.RuntimeAlloc {
		calls.Flags = noPrealloc
	} else {
		calls.MaxEntries = uint32(min(callsInFlight, preallocated/s.size))
	}
	u.Collection.Maps[s.calls] = calls
	u.Collection.Maps[s.zeroes] = &ebpf.MapSpec{
		Name: s.zeroes, Type: ebpf.Array, KeySize: 4, ValueSize: uint32(s.size), MaxEntries: 1,
	}
	return s
}

// noPrealloc is BPF_F_NO_PREALLOC.
const noPrealloc = 1

// loadFrame puts the address of the call's frame into reg: the same number in
// the entry and in the return program.
func (p *program) loadFrame(reg asm.Register) {
	if p.kind.trampoline() {
		p.emit(asm.Mov.Reg(reg, rContext))
		return
	}
	p.emit(asm.LoadMem(reg, rContext, p.opts.Arch.SP, asm.DWord))
	if p.kind == Kretprobe {
		p.emit(asm.Add.Imm(reg, int32(-p.opts.Arch.RetSP)))
	}
}

// frame stores the frame address as the key of the stash.
func (p *program) frame() {
	p.step("frame address")
	p.loadFrame(asm.R1)
	p.emit(asm.StoreMem(asm.RFP, spFrame, asm.R1, asm.DWord))
}

// insert makes a new entry and points rOut to it. It is filled in place: a
// per-CPU buffer would be overwritten when the task is preempted.
func (p *program) insert(s *stash) {
	p.step("new stash entry of %d bytes", s.size)
	p.emit(asm.StoreImm(asm.RFP, spKey, 0, asm.Word), mapPtr(asm.R1, s.zeroes))
	p.move(asm.R2, asm.RFP, spKey)
	p.emit(
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, labelExit),
		asm.Mov.Reg(asm.R3, asm.R0),
		mapPtr(asm.R1, s.calls),
	)
	p.move(asm.R2, asm.RFP, spFrame)
	p.emit(
		asm.Mov.Imm(asm.R4, int32(ebpf.UpdateAny)),
		asm.FnMapUpdateElem.Call(),
		asm.JNE.Imm(asm.R0, 0, labelLost),
	)
	p.find(s, rOut, labelExit)
	p.origin = s.origin
	p.emit(asm.FnKtimeGetNs.Call(), asm.StoreMem(rOut, 0, asm.R0, asm.DWord))
}

// lookup points rStash to the call's entry; a call without one did not match
// at entry.
func (p *program) lookup(s *stash) {
	p.step("stash entry of this call")
	p.find(s, rStash, labelExit)
}

func (p *program) find(s *stash, reg asm.Register, missing string) {
	p.emit(mapPtr(asm.R1, s.calls))
	p.move(asm.R2, asm.RFP, spFrame)
	p.emit(
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, missing),
		asm.Mov.Reg(reg, asm.R0),
	)
}

// copyStash copies the run of bytes into the record.
func (p *program) copyStash(s *stash) {
	p.step("values kept at entry")
	p.move(asm.R1, rOut, s.origin)
	p.emit(
		asm.Mov.Imm(asm.R2, int32(s.size)),
		asm.Mov.Reg(asm.R3, rStash),
		asm.FnProbeReadKernel.Call(),
	)
}

// drop removes the call's entry.
func (p *program) drop() {
	p.label(labelDrop)
	p.step("remove stash entry")
	p.emit(mapPtr(asm.R1, p.stash.calls))
	p.move(asm.R2, asm.RFP, spFrame)
	p.emit(asm.FnMapDeleteElem.Call())
}
