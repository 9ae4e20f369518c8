package codegen

import (
	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// countsUnpaired reports whether a return of which nothing is kept counts as
// unpaired. Where conditions at entry choose the calls, most returns are of others.
func (p *program) countsUnpaired() bool {
	return len(p.probe.EntryConds) == 0 && p.probe.Follow == nil && p.probe.Chain == nil
}

// countsUnkept reports whether the thread counts its calls under way that have found
// no room. They are reported as such, and their returns, of which nothing is kept, must
// not count as unpaired, too. If the kernel skips the return of one of them, the
// thread's next return without an entry is taken for it.
func (p *program) countsUnkept() bool {
	return p.countsUnpaired() && !p.opts.cancels(p.kind)
}

// noRoom returns the label for a call of which nothing can be kept. It counts for the
// event at return, which is the one that is missed.
func (p *program) noRoom() string {
	full, next := p.fresh("full"), p.notKept()
	p.later(full, func() {
		if p.countsUnkept() {
			stranger := p.fresh("stranger")
			p.step("its return will find nothing")
			p.thread(stranger)
			p.addUnkept(1)
			p.label(stranger)
		}
		p.of(p.returns, func() { p.count(compiler.CounterNoRoom, next) })
	})
	return full
}

// returned leaves if nothing is kept of the call because it has found no room.
func (p *program) returned() {
	if !p.countsUnkept() {
		return
	}
	others := p.fresh("others")
	p.step("had it found no room?")
	p.thread(others)
	p.emit(asm.LoadMem(asm.R1, asm.R2, elementUnkept, asm.DWord), asm.JEq.Imm(asm.R1, 0, others))
	p.addUnkept(-1)
	p.emit(asm.Ja.Label(p.exitLabel()))
	p.label(others)
}

// unkept returns the label for a rejected return of which nothing is kept.
func (p *program) unkept() string {
	if !p.countsUnkept() {
		return p.exitLabel()
	}
	return p.deferred("unkept", func() {
		p.returned()
		p.emit(asm.Ja.Label(p.exitLabel()))
	})
}

// addUnkept adds n to the number of calls without room of the element at R2.
func (p *program) addUnkept(n int32) {
	p.emit(asm.Mov.Imm(asm.R1, n), asm.AddAtomic.Mem(asm.R2, asm.R1, asm.DWord, elementUnkept))
}
