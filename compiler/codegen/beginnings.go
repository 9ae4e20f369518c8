package codegen

import (
	"fmt"
	"math/bits"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// The beginnings of a span wait in a map for their ends: an array of one element,
// which is a table of entries. A key can be in any of a few entries, the first of
// which is given by a hash of the key. An entry is taken by comparing and exchanging
// its state, so that one program alone writes, reads or frees it, on whatever CPU and
// in whatever interrupt: what an end shows is of one beginning, and no beginning is
// shown twice. A program that finds an entry taken by another one does not wait: to
// it, the span has not begun yet, or has ended.
//
// Linux 5.10 cannot compare and exchange. There, the state is changed while the
// number of the entry is in a hash map, into which only one program can insert it.
// That needs stores to be seen in their order, as on x86.

// Offsets in an entry of the table. Then comes the run of bytes of the record that
// the beginning knows.
const (
	waitState = 0 // free, taken, or the time of the beginning
	waitKey   = 8
	waitRun   = 16
)

// States of an entry. All other numbers are the time of a beginning.
const (
	stateFree  = 0
	stateTaken = 1
)

const (
	// waitWindow is the number of entries in which a key can be.
	waitWindow = 16
	// waitSize limits the size of a table in bytes, and mostWaiting the number of its
	// entries. Before Linux 6.13 an element of an array cannot be larger than waitSize.
	waitSize, mostWaiting = 4 << 20, 32768
	// waitLocks is the name of the map with the numbers of entries whose state is
	// being changed, and mostLocks the number of programs that can do so at once.
	waitLocks, mostLocks = "span_locks", 1024
)

// beginnings describes the table of a span.
type beginnings struct {
	name   string
	number int                 // of the table, for waitLocks
	begin  *compiler.EventType // counts the beginnings
	event  *compiler.EventType // what the end writes
	origin int                 // offset of an entry's state in the record
	run    int                 // end of the run of bytes in an entry
	size   int                 // of an entry
	bits   int                 // of an entry's number
	// stacks has the offsets in an entry of the numbers of stacks that are in the
	// key of a table of aggregates.
	stacks map[*compiler.Value]int
}

func (b *beginnings) entries() int { return 1 << b.bits }

// start returns the offset of the time of the beginning in an entry.
func (b *beginnings) start() int { return b.event.Layout.Start - b.origin }

// addBeginnings adds the map in which the beginnings of a span wait.
func (u *generator) addBeginnings(b *beginnings, opts options) {
	l := &b.event.Layout
	end := l.Faults + compiler.Align8(len(b.event.Items))
	for _, slot := range l.Slots[:len(b.event.Kept())] {
		end = max(end, compiler.Align8(max(slot.Off+8, slot.Data+slot.Cap)))
	}
	b.origin = l.Begin - waitRun
	b.run, b.stacks = end-b.origin, map[*compiler.Value]int{}
	b.size = b.run
	for _, v := range b.event.Kept() {
		if b.event.Probe.Measure == compiler.Tables && v.Base.Builtin == compiler.KernelStack {
			b.stacks[v] = b.size
			b.size += compiler.KeyRoom(v)
		}
	}
	for b.size<<(b.bits+1) <= waitSize && b.entries() < mostWaiting {
		b.bits++
	}
	b.name = fmt.Sprintf("span%d", b.number)
	u.addMap(b.name, ebpf.Array, 4, b.size<<b.bits, 1)
	if !opts.Features.CompareExchange {
		u.addMap(waitLocks, ebpf.Hash, 8, 8, mostLocks)
	}
}

// waiting has the stack offsets of what the search for a key needs.
type waiting struct {
	key   int16
	first int16 // number of the first entry that the key can be in
	found int16 // number of the entry that is taken, or -1
	lock  int16 // key of waitLocks
}

// reserveWaiting reserves room for what the search needs.
func (p *program) reserveWaiting() waiting {
	return waiting{int16(p.room(8)), int16(p.room(8)), int16(p.room(8)), int16(p.room(8))}
}

// seek evaluates the key of the point, and determines the first entry in which it can
// be.
func (p *program) seek(w waiting) {
	b, key := p.span, p.probe.SpanKey()
	p.step("key %s", key.Name)
	unreadable := p.countedUnreadable()
	if at, again := p.saved[key]; again {
		p.emit(asm.LoadMem(asm.R1, asm.RFP, int16(at), asm.DWord))
	} else {
		p.readScalar(key, p.loads.Read(key), true, unreadable)
	}
	p.emit(
		asm.StoreMem(asm.RFP, w.key, asm.R1, asm.DWord),
		asm.LoadImm(asm.R2, -0x61C8864680B583EB, asm.DWord), // Fibonacci hashing
		asm.Mul.Reg(asm.R1, asm.R2),
		asm.RSh.Imm(asm.R1, int32(64-max(b.bits, 1))),
		asm.StoreMem(asm.RFP, w.first, asm.R1, asm.DWord),
	)
}

// takeAll takes all entries with the key, and frees all but the first. There are
// several if two beginnings came at the same time. Those that are freed count as
// replaced, and so does the first one if replaces is set.
func (p *program) takeAll(w waiting, replaces bool) {
	loop, next, another := p.fresh("entry"), p.prefix+p.fresh("nextentry"), p.prefix+p.fresh("another")
	p.step("entries with the key")
	p.setWord(w.found, -1)
	p.emit(asm.Mov.Imm(rBase, 0))
	p.label(loop)
	p.candidate(w)
	p.emit(
		asm.LoadMem(rStash, rOut, waitState, asm.DWord),
		asm.JLE.Imm(rStash, stateTaken, next),
		asm.LoadMem(asm.R1, rOut, waitKey, asm.DWord),
		asm.LoadMem(asm.R2, asm.RFP, w.key, asm.DWord),
		asm.JNE.Reg(asm.R1, asm.R2, next),
	)
	p.exchange(w, stateTaken, next)
	p.emit(asm.LoadMem(asm.R1, asm.RFP, w.found, asm.DWord), asm.JSGE.Imm(asm.R1, 0, another))
	p.keepFound(w)
	if replaces {
		p.addBegun(compiler.CounterReplaced, 1)
		p.addBegun(compiler.CounterOpen, -1)
	}
	p.label(next)
	p.checkpoint(loopJumps)
	p.step("the next entry")
	p.emit(asm.Add.Imm(rBase, 1), asm.JLT.Imm(rBase, int32(p.window()), loop))
	p.later(another, func() {
		p.step("one more beginning, which came at the same time")
		p.emit(asm.Mov.Imm(asm.R1, stateFree))
		p.setState(rOut, asm.R1)
		p.addBegun(compiler.CounterReplaced, 1)
		p.addBegun(compiler.CounterOpen, -1)
		p.emit(asm.Ja.Label(next))
	})
}

// takeFree takes a free entry, unless one of the key has been taken, and counts the
// beginning as open.
func (p *program) takeFree(w waiting) {
	loop, next, found, full := p.fresh("entry"), p.prefix+p.fresh("nextentry"), p.prefix+p.fresh("found"), p.prefix+p.fresh("full")
	p.step("a free entry")
	p.emit(
		asm.LoadMem(asm.R1, asm.RFP, w.found, asm.DWord),
		asm.JSGE.Imm(asm.R1, 0, found),
		asm.Mov.Imm(rBase, 0),
	)
	p.label(loop)
	p.candidate(w)
	p.emit(asm.LoadMem(rStash, rOut, waitState, asm.DWord), asm.JNE.Imm(rStash, stateFree, next))
	p.exchange(w, stateTaken, next)
	p.keepFound(w)
	p.emit(asm.Ja.Label(found))
	p.label(next)
	p.checkpoint(loopJumps)
	p.step("the next entry")
	p.emit(
		asm.Add.Imm(rBase, 1),
		asm.JLT.Imm(rBase, int32(p.window()), loop),
		asm.Ja.Label(full),
	)
	p.later(full, func() { p.count(compiler.CounterNoRoom, p.exitLabel()) })
	p.label(found)
	p.addBegun(compiler.CounterOpen, 1)
}

// window returns the number of entries in which a key can be.
func (p *program) window() int { return min(waitWindow, p.span.entries()) }

// candidate points rOut to the entry whose distance from the first one is in rBase.
func (p *program) candidate(w waiting) {
	p.emit(asm.LoadMem(asm.R1, asm.RFP, w.first, asm.DWord), asm.Add.Reg(asm.R1, rBase))
	p.entryInR1(rOut)
}

// entryAt points a register to the entry whose number is at a stack offset.
func (p *program) entryAt(reg asm.Register, number int16) {
	p.emit(asm.LoadMem(asm.R1, asm.RFP, number, asm.DWord))
	p.entryInR1(reg)
}

// entryInR1 points a register to the entry whose number is in the lower bits of R1.
func (p *program) entryInR1(reg asm.Register) {
	b := p.span
	p.emit(
		asm.And.Imm(asm.R1, int32(b.entries()-1)),
		asm.Mul.Imm(asm.R1, int32(b.size)),
		asm.LoadMapValue(reg, 0, 0).WithReference(b.name),
		asm.Add.Reg(reg, asm.R1),
	)
}

// keepFound stores the number of the entry whose distance from the first one is in
// rBase.
func (p *program) keepFound(w waiting) {
	p.emit(
		asm.LoadMem(asm.R1, asm.RFP, w.first, asm.DWord),
		asm.Add.Reg(asm.R1, rBase),
		asm.And.Imm(asm.R1, int32(p.span.entries()-1)),
		asm.StoreMem(asm.RFP, w.found, asm.R1, asm.DWord),
	)
}

// exchange changes the state of the entry at rOut from the one in rStash to another,
// or goes to changed if it is no longer that.
func (p *program) exchange(w waiting, to int32, changed string) {
	if p.opts.Features.CompareExchange {
		p.emit(
			asm.Mov.Reg(asm.R0, rStash),
			asm.Mov.Imm(asm.R1, to),
			compareExchange(rOut, asm.R1, waitState),
			asm.JNE.Reg(asm.R0, rStash, changed),
		)
		return
	}
	unlock := p.fresh("unlock")
	p.emit(
		asm.LoadMem(asm.R1, asm.RFP, w.first, asm.DWord),
		asm.Add.Reg(asm.R1, rBase),
		asm.And.Imm(asm.R1, int32(p.span.entries()-1)),
		asm.Or.Imm(asm.R1, int32(p.span.number<<bits.Len(mostWaiting))),
		asm.StoreMem(asm.RFP, w.lock, asm.R1, asm.DWord),
	)
	p.insert(waitLocks, int(w.lock), int(w.lock))
	p.emit(
		asm.JNE.Imm(asm.R0, 0, changed), // another program is changing it
		asm.LoadMem(asm.R1, rOut, waitState, asm.DWord),
		asm.JNE.Reg(asm.R1, rStash, unlock),
		asm.Mov.Imm(asm.R1, to),
		asm.StoreMem(rOut, waitState, asm.R1, asm.DWord),
	)
	p.unlock(w)
	p.later(unlock, func() {
		p.unlock(w)
		p.emit(asm.Ja.Label(changed))
	})
}

// unlock ends the change of a state.
func (p *program) unlock(w waiting) {
	p.callMap(asm.FnMapDeleteElem, waitLocks, int(w.lock))
}

// setState sets the state of a taken entry to what is in a register, after all that
// has been stored in it.
func (p *program) setState(entry, state asm.Register) {
	if p.opts.Features.CompareExchange {
		p.emit(exchange(entry, state, waitState))
		return
	}
	p.emit(asm.StoreMem(entry, waitState, state, asm.DWord)) // stores are seen in their order on x86
}
