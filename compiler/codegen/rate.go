package codegen

import (
	"math/bits"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// The word [compiler.CounterSecond] of an event has a second of CLOCK_MONOTONIC in its
// upper half, and in the lower half how many programs have asked in it. The second
// never goes back, and each number is given out once, so that no more than
// [compiler.Options].Rate programs get a number that is low enough. A program that is
// preempted after it has read the clock asks in the word's second.
//
// Linux 5.10 can neither compare and exchange nor add and fetch. There, the word is
// changed while the number of the event is in a hash map, into which only one program
// can insert it. That needs stores to be seen in their order, as on x86.

// rateLocks is the name of that map.
const rateLocks = "rate_locks"

// rateTries is how often a program tries to ask if others ask at the same moment. A
// program that fails gets no number: its event is left out, too.
const rateTries = 4

// second is the number of nanoseconds in a second.
const second = 1_000_000_000

// addRate adds what is needed to bound the rate of events.
func (u *generator) addRate(opts options) {
	if opts.Rate > 0 && !opts.Features.CompareExchange {
		u.addMap(rateLocks, ebpf.Hash, 4, 4, len(u.Events))
	}
}

// limit generates code that writes an event if it is one of the first of its kind in
// this second. Others are only counted.
func (p *program) limit(write func()) {
	if p.opts.Rate == 0 {
		write()
		return
	}
	limited, done := p.fresh("limited"), p.prefix+p.fresh("done")
	p.ask(limited)
	write()
	p.label(done)
	number := p.number
	p.later(limited, func() { p.of(number, func() { p.countLimited(done) }) })
}

// countLimited counts an event that is left out because of the rate, and jumps to next.
func (p *program) countLimited(next string) {
	p.countMatched()
	p.count(compiler.CounterLimited, next)
}

// ask goes to limited if as many events as the rate allows have asked in this second.
func (p *program) ask(limited string) {
	p.step("at most %d a second", p.opts.Rate)
	p.secondWord(limited)
	p.emit(
		asm.Mov.Reg(rOut, asm.R0),
		asm.FnKtimeGetNs.Call(),
		asm.Div.Imm(asm.R0, second),
		asm.LSh.Imm(asm.R0, 32),
		asm.Mov.Reg(rBase, asm.R0),
	)
	if p.opts.Features.CompareExchange {
		p.askAtomically(limited)
		return
	}
	p.askLocked(limited)
}

// secondWord points R0 to the word of the event, which is in the first of its slots.
func (p *program) secondWord(missing string) {
	at := compiler.CounterSecond.Offset()
	if !p.numbered() {
		p.emit(asm.LoadMapValue(asm.R0, 0, uint32(p.layout.At(p.number, 0)+at)).WithReference(compiler.CountersMap))
		return
	}
	p.loadNumber()
	p.emit(
		asm.Mov.Reg32(asm.R0, asm.R0),
		asm.JGE.Imm(asm.R0, int32(p.layout.Events), missing), // for the verifier
		asm.LSh.Imm(asm.R0, int32(compiler.SlotBits+bits.Len(uint(p.layout.Slots-1)))),
		asm.LoadMapValue(asm.R1, 0, uint32(p.layout.At(0, 0)+at)).WithReference(compiler.CountersMap),
		asm.Add.Reg(asm.R0, asm.R1),
	)
}

// askAtomically asks in the word at rOut. The second in rBase begins if the word has an
// earlier one.
func (p *program) askAtomically(limited string) {
	again, begun, add, late := p.fresh("again"), p.prefix+p.fresh("begun"), p.prefix+p.fresh("ask"), p.prefix+p.fresh("late")
	p.emit(asm.Mov.Imm(asm.R3, rateTries))
	p.label(again)
	p.emit(asm.LoadMem(asm.R0, rOut, 0, asm.DWord))
	p.secondOf(asm.R1, asm.R0)
	p.emit(
		asm.JGE.Reg(asm.R1, rBase, begun),
		asm.Mov.Reg(asm.R2, rBase),
		compareExchange(rOut, asm.R2, 0),
		asm.Ja.Label(add),
	)
	p.label(begun)
	p.fits(asm.R0, limited) // so that the lower half does not overflow
	p.label(add)
	p.emit(asm.Mov.Imm(asm.R1, 1), fetchAdd(rOut, asm.R1, 0))
	p.secondOf(asm.R2, asm.R1)
	p.emit(asm.JLT.Reg(asm.R2, rBase, late))
	p.fits(asm.R1, limited)
	p.later(late, func() {
		p.step("asked in an earlier second")
		p.emit(asm.Sub.Imm(asm.R3, 1), asm.JNE.Imm(asm.R3, 0, again), asm.Ja.Label(limited))
	})
}

// askLocked asks in the word at rOut while no other program does.
func (p *program) askLocked(limited string) {
	lock, locked, begun, full := p.fresh("lock"), p.prefix+p.fresh("locked"), p.prefix+p.fresh("begun"), p.prefix+p.fresh("full")
	p.emit(asm.LoadMem(asm.R0, rOut, 0, asm.DWord))
	p.secondOf(asm.R1, asm.R0)
	p.emit(asm.JLT.Reg(asm.R1, rBase, lock))
	p.fits(asm.R0, limited)
	p.label(lock)
	p.loadNumber()
	p.emit(asm.StoreMem(asm.RFP, spKey, asm.R0, asm.Word))
	for range rateTries {
		p.insert(rateLocks, spKey, spKey)
		p.emit(asm.JEq.Imm(asm.R0, 0, locked))
	}
	p.emit(asm.Ja.Label(limited))
	p.label(locked)
	p.emit(asm.LoadMem(asm.R0, rOut, 0, asm.DWord))
	p.secondOf(asm.R1, asm.R0)
	p.emit(asm.JGE.Reg(asm.R1, rBase, begun), asm.Mov.Reg(asm.R0, rBase))
	p.label(begun)
	p.emit(asm.Mov.Reg(asm.R1, asm.R0))
	p.fits(asm.R1, full)
	p.emit(asm.Add.Imm(asm.R0, 1), asm.StoreMem(rOut, 0, asm.R0, asm.DWord))
	p.callMap(asm.FnMapDeleteElem, rateLocks, spKey)
	p.later(full, func() {
		p.callMap(asm.FnMapDeleteElem, rateLocks, spKey)
		p.emit(asm.Ja.Label(limited))
	})
}

// secondOf loads into the upper half of reg the second of the word in another
// register.
func (p *program) secondOf(reg, word asm.Register) {
	p.emit(asm.Mov.Reg(reg, word), asm.RSh.Imm(reg, 32), asm.LSh.Imm(reg, 32))
}

// fits goes to limited unless the number in the lower half of a word is low enough.
func (p *program) fits(word asm.Register, limited string) {
	p.emit(asm.Mov.Reg32(word, word), asm.JGE.Imm(word, int32(p.opts.Rate), limited))
}
