package compiler

import (
	"slices"

	"github.com/cilium/ebpf/asm"
)

// program generates the instructions for one side of one probe. A program of
// kind [Session] is made of two, which share their code.
type program struct {
	*code
	kind       Kind
	side       Side
	probe      *Probe
	event      *Event // that the side contributes to
	number     int    // of the event; from the cookie on if the kind is multi
	fixed      bool   // number is whole, though the kind is multi
	opts       Options
	saved      map[*Value]int // stack offsets of values that tests have read
	free       int            // stack offset below which all is free
	buffer     int            // stack offset of the buffer for strings; 0: none yet
	busy       int            // stack offset of the address of the busy word
	index      int            // of the probe in the unit
	ptr        asm.Register   // for the pointers that accesses are based on
	origin     int            // offset in the record of where rOut points
	stash      *stash         // nil: none
	keeps      *stash         // that an entry is to be kept in; nil: none
	found      bool           // rStash is what was kept of the call
	identified bool           // the ids of the process are stored
	mixed      bool           // a test may hold though a part of it met a fault
	prefix     string         // of the labels
	accounting
	measuring
}

// newProgram begins a program for one side of a probe. The event is the one
// that what is lost counts for.
func (u *Unit) newProgram(c *code, p *Probe, side Side, kind Kind, ev *Event, opts Options) *program {
	prefix := "entry_"
	if side == AtReturn {
		prefix = "return_"
	}
	number := ev.Number
	if kind.Multi() {
		number -= u.first[p]
	}
	prog := &program{
		code: c, kind: kind, side: side, probe: p, event: ev, number: number, opts: opts,
		saved: map[*Value]int{}, free: spFree, prefix: prefix, ptr: rBase, index: u.index[p],
		measuring: measuring{element: u.elements[p]},
	}
	prog.rejected = prog.countRejected
	prog.fates = []int{number}
	return prog
}

// begin keeps the context and leaves for processes that are not to be traced.
func (p *program) begin() {
	if p.kind != Session {
		p.step("%s %s", p.kind, p.probe.Func.Name)
		p.emit(asm.Mov.Reg(rContext, asm.R1))
	}
	p.beginTally()
	p.filter()
	p.known = p.identified
	if p.probe.Measure != NoMeasure {
		p.first = p.room(firstSize)
	}
	if p.probe.guarded(p.kind) {
		p.enterBusy()
	}
	p.mixed = hasAlternatives(p.probe.EntryTests) || hasAlternatives(p.probe.ReturnTests)
	if p.mixed {
		p.step("no fault met")
		p.setWord(spFault, 0)
	}
}

// entry is what is done at entry: an event, or something to keep, or both.
func (p *program) entry(event bool, s *stash) {
	p.keeps = s
	p.begin()
	p.tests(p.probe.EntryTests)
	p.admit()
	p.setFlags()
	if event {
		p.reportOrMeasure(p.event.Items)
	}
	if s != nil {
		p.keep(s)
	}
	p.end()
}

// ret is what is done at return: an event, with what was kept if anything.
func (p *program) ret(s *stash) {
	p.stash = s
	p.begin()
	switch {
	case s == nil && p.probe.Paired:
		p.tests(slices.Concat(p.probe.EntryTests, p.probe.ReturnTests))
	case s == nil:
		p.tests(p.probe.ReturnTests)
	default:
		p.frame()
		known, kept := p.splitTests()
		p.tests(known)
		p.lookup(s)
		p.recallFault()
		p.tests(kept)
	}
	p.admit()
	items := p.event.Items
	if s != nil {
		items = p.probe.Return
	}
	p.reportOrMeasure(items)
	if s != nil {
		p.drop()
	}
	p.end()
}

// splitTests tells the tests at return that need nothing of the entry from the
// others: a call that they reject need not be looked up.
func (p *program) splitTests() (known, kept []Test) {
	for _, t := range p.probe.ReturnTests {
		if needsEntry(t) {
			kept = append(kept, t)
		} else {
			known = append(known, t)
		}
	}
	return known, kept
}

// Labels of a side.
func (p *program) exitLabel() string { return p.prefix + "exit" }

func (p *program) skipLabel() string {
	if p.kind == Session && p.side == AtEntry && !p.opts.Features.CancelRepeats {
		return p.prefix + "skip"
	}
	return p.exitLabel()
}

// unshown is the way of a call that is not shown, once it is counted.
func (p *program) unshown() string {
	if p.stash != nil {
		return p.prefix + "drop"
	}
	return p.skipLabel()
}

// end is the one way out, and what was put off.
func (p *program) end() {
	p.label(p.exitLabel())
	p.step("done")
	if p.probe.guarded(p.kind) {
		p.leaveBusy()
		p.label(p.outLabel())
	}
	p.emit(asm.Mov.Imm(asm.R0, 0), asm.Return())
	if skip := p.skipLabel(); skip != p.exitLabel() {
		p.later(skip, func() {
			p.step("the return of this call is not wanted")
			p.emit(asm.Mov.Imm(asm.R0, 1), asm.Return())
		})
	}
	p.finish()
}

// room takes bytes of the stack frame; 0 means that there are none left.
func (p *program) room(size int) int {
	if p.free-align8(size) < -stackSize {
		return 0
	}
	p.free -= align8(size)
	return p.free
}

// loadNumber puts the number of the event into R0.
func (p *program) loadNumber() {
	if !p.kind.Multi() || p.fixed {
		p.emit(asm.Mov.Imm(asm.R0, int32(p.number)))
		return
	}
	p.emit(asm.Mov.Reg(asm.R1, rContext), asm.FnGetAttachCookie.Call())
	if p.number != 0 {
		p.emit(asm.Add.Imm(asm.R0, int32(p.number)))
	}
}

// count adds one to a counter of the event, and goes to a label.
func (p *program) count(counter int, next string) {
	p.step("count it as %s", counterNames[counter])
	p.counters(next)
	p.add(counter)
	p.emit(asm.Ja.Label(next))
}

// counters points R0 to the counters of the event.
func (p *program) counters(missing string) {
	p.loadNumber()
	p.emit(
		asm.StoreMem(asm.RFP, spKey, asm.R0, asm.Word),
		mapPtr(asm.R1, CountersMap),
	)
	p.move(asm.R2, asm.RFP, spKey)
	p.emit(asm.FnMapLookupElem.Call(), asm.JEq.Imm(asm.R0, 0, missing))
}

// add adds one to a counter of the element that R0 points to.
func (p *program) add(counter int) {
	p.emit(asm.Mov.Imm(asm.R1, 1), asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, int16(counter)))
}

// counted is the label of code that counts and then goes on.
func (p *program) counted(hint string, counter int, next string) string {
	label := p.prefix + p.fresh(hint)
	p.later(label, func() { p.count(counter, next) })
	return label
}
