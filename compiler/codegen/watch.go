package codegen

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// addWatched adds what the probes that watch memory share: the map with their
// slots, and the program by which user space reads the memory.
func (u *generator) addWatched() {
	slots := len(u.Watched())
	if slots == 0 {
		return
	}
	u.Collection.Maps[compiler.WatchedMap] = compiler.NewWatchedMap(slots)
	u.Collection.Programs[compiler.PeekProgram] = &ebpf.ProgramSpec{
		Name: compiler.PeekProgram, Type: ebpf.RawTracepoint, Instructions: peek(uint32(slots * compiler.WatchedSize)), License: license,
	}
}

// watchedWord points a register to a word of the map.
func watchedWord(reg asm.Register, off uint32) asm.Instruction {
	return asm.LoadMapValue(reg, 0, off).WithReference(compiler.WatchedMap)
}

// peek returns the program that reads memory for user space. Its words are at an
// offset in the map.
func peek(at uint32) asm.Instructions {
	c := &code{}
	c.step("what user space asks for")
	c.setWord(spScratch, 0)
	c.emit(
		watchedWord(rBase, at),
		asm.LoadMem(asm.R2, rBase, compiler.PeekSize, asm.DWord),
		asm.JGT.Imm(asm.R2, 8, "exit"),
		asm.LoadMem(asm.R3, rBase, compiler.PeekAddr, asm.DWord),
	)
	c.move(asm.R1, asm.RFP, spScratch)
	c.emit(
		asm.FnProbeReadKernel.Call(),
		asm.StoreMem(rBase, compiler.PeekError, asm.R0, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, spScratch, asm.DWord),
		asm.StoreMem(rBase, compiler.PeekData, asm.R1, asm.DWord),
	)
	c.label("exit")
	c.emit(asm.Mov.Imm(asm.R0, 0), asm.Return())
	return c.insns
}

// readWatched reads the watched memory and leaves the value, and the one before it,
// in the stack frame. The memory has only one of them; the other is the value that
// the program saw last, which is kept before anything rejects the write.
func (p *program) readWatched() {
	w := p.probe.Watch
	p.step("the bytes of %s", p.probe.Func.Name)
	p.emit(
		watchedWord(rBase, uint32(w.Slot*compiler.WatchedSize)),
		asm.Mov.Imm(asm.R1, 1),
		asm.AddAtomic.Mem(rBase, asm.R1, asm.DWord, compiler.WatchedHits),
	)
	if w.Finder != nil {
		p.checkLive()
	}
	p.emit(asm.LoadMem(asm.R3, rBase, compiler.WatchedAddr, asm.DWord))
	p.readScratch(w.Size)
	p.emit(
		asm.JNE.Imm(asm.R0, 0, p.counted("unreadable", compiler.CounterUnreadable, p.outLabel())),
		load(asm.R1, asm.RFP, spScratch, w.Size),
	)
	if w.New == nil {
		p.dropRepeat()
		p.keepState(w.Old)
		return
	}
	p.step("and what was there before")
	p.emit(asm.Mov.Reg(asm.R2, asm.R1))
	if p.opts.Features.CompareExchange {
		p.emit(exchange(rBase, asm.R2, compiler.WatchedLast))
	} else {
		p.emit(
			asm.LoadMem(asm.R2, rBase, compiler.WatchedLast, asm.DWord),
			asm.StoreMem(rBase, compiler.WatchedLast, asm.R1, asm.DWord),
		)
	}
	p.emit(asm.StoreMem(asm.RFP, spScratch, asm.R2, asm.DWord))
	p.keepState(w.New)
	p.emit(asm.LoadMem(asm.R1, asm.RFP, spScratch, asm.DWord))
	p.keepState(w.Old)
}

// checkLive leaves for a write to the memory of an object that has ended, which may be
// another object's now.
func (p *program) checkLive() {
	p.followed = int16(p.room(compiler.ObjectPart))
	live := p.fresh("live")
	p.emit(
		asm.LoadMem(asm.R1, rBase, compiler.WatchedObject, asm.DWord),
		asm.JEq.Imm(asm.R1, 0, p.outLabel()),
	)
	p.compareObjects(live, p.outLabel())
	p.emit(asm.Ja.Label(p.outLabel()))
	p.label(live)
	p.emit(
		asm.LoadMem(asm.R1, asm.RFP, p.followed+compiler.ObjectNumber, asm.DWord),
		asm.LoadMem(asm.R2, rBase, compiler.WatchedNumber, asm.DWord),
		asm.JNE.Reg(asm.R1, asm.R2, p.outLabel()),
	)
}

// keepLast stores what is in the watched memory of the object that ends. Later that
// memory is another object's. User space may read what is stored once it has the record of
// the end.
func (p *program) keepLast() {
	for _, probe := range p.watched() {
		w := probe.Watch
		if w.Finder == nil {
			continue
		}
		other := p.fresh("otherslot")
		p.step("the last value of %s", probe.Func.Name)
		p.emit(
			watchedWord(rBase, uint32(w.Slot*compiler.WatchedSize)),
			asm.LoadMem(asm.R1, rBase, compiler.WatchedNumber, asm.DWord),
			asm.LoadMem(asm.R2, asm.RFP, p.followed+compiler.ObjectNumber, asm.DWord),
			asm.JNE.Reg(asm.R1, asm.R2, other),
			asm.LoadMem(asm.R3, rBase, compiler.WatchedAddr, asm.DWord),
			asm.JEq.Imm(asm.R3, 0, other),
			asm.Mov.Imm(asm.R2, int32(w.Size)),
		)
		p.move(asm.R1, rBase, compiler.WatchedEnd)
		p.emit(
			asm.FnProbeReadKernel.Call(),
			asm.JNE.Imm(asm.R0, 0, other),
			asm.Mov.Imm(asm.R1, 1),
			asm.StoreMem(rBase, compiler.WatchedKnown, asm.R1, asm.DWord),
		)
		p.label(other)
	}
}

// dropRepeat leaves for a write that the hardware has shown already: where it breaks
// before a write, the first hit comes twice, by the same instruction and with the same
// bytes in R1. A second store of what is there by that instruction is dropped, too.
func (p *program) dropRepeat() {
	p.step("is it a repeat?")
	other := p.fresh("other")
	p.emit(
		asm.LoadMem(asm.R2, rBase, compiler.WatchedLast, asm.DWord),
		asm.LoadMem(asm.R3, rBase, compiler.WatchedIP, asm.DWord),
		asm.LoadMem(asm.R4, rContext, p.opts.Arch.IP, asm.DWord),
		asm.StoreMem(rBase, compiler.WatchedLast, asm.R1, asm.DWord),
		asm.StoreMem(rBase, compiler.WatchedIP, asm.R4, asm.DWord),
		asm.JNE.Reg(asm.R2, asm.R1, other),
		asm.JEq.Reg(asm.R3, asm.R4, p.outLabel()),
	)
	p.label(other)
}

// keepState keeps the value that the bytes in R1 mean.
func (p *program) keepState(v *compiler.Value) {
	if v.Scalar != nil {
		p.extend(asm.R1, v.Load)
		p.convert(v)
	}
	at := p.room(8)
	p.emit(asm.StoreMem(asm.RFP, int16(at), asm.R1, asm.DWord))
	p.saved[v] = at
}

// reserveTries is how often a record is asked for. Breakpoints are hit as
// non-maskable interrupts, which get no record while another CPU is getting one.
const reserveTries = 256

// reserveAgain allocates a record, in R0, and tries again if there is none.
func (p *program) reserveAgain(size int, full string) {
	again, reserved := p.fresh("again"), p.prefix+p.fresh("reserved")
	p.emit(asm.Mov.Imm(rBase, reserveTries))
	p.label(again)
	p.emit(
		mapPtr(asm.R1, compiler.EventsMap),
		asm.Mov.Imm(asm.R2, int32(size)),
		asm.Mov.Imm(asm.R3, 0),
		asm.FnRingbufReserve.Call(),
		asm.JNE.Imm(asm.R0, 0, reserved),
		asm.Sub.Imm(rBase, 1),
		asm.JNE.Imm(rBase, 0, again),
		asm.Ja.Label(full),
	)
	p.label(reserved)
}
