package codegen

import (
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// program generates the instructions for one side of one probe. A program of
// kind [compiler.KprobeSession] consists of two, which share their code.
type program struct {
	*code
	kind       compiler.Kind
	side       compiler.Side
	probe      *compiler.Probe
	event      *compiler.EventType // event that the side contributes to
	number     int                 // number of the event; relative to the cookie if the kind is multi
	fixed      bool                // whether number is absolute although the kind is multi
	opts       options
	loads      compiler.Loads           // values that are read by plain loads
	order      []compiler.Cond          // conditions that the program evaluates
	saved      map[*compiler.Value]int  // stack offsets of values that conditions have read
	free       int                      // stack offset below which the frame is free
	buffer     int                      // stack offset of the buffer for strings; 0 if not yet allocated
	busy       int                      // stack offset of the address of the busy word
	index      int                      // index of the probe in the unit
	ptr        asm.Register             // register for the pointers that accesses are based on
	form       form                     // form of the record that is being written
	origin     int                      // offset in the record that rOut points to
	stash      *stash                   // stash to read at return; nil if none
	keeps      *stash                   // stash to fill at entry; nil if none
	returns    int                      // number of the event at return, if the program keeps calls for one
	threads    *threads                 // where stashes are
	span       *beginnings              // of the span that the probe begins or ends
	function   int                      // number of the function in a tag
	found      bool                     // whether rStash points to the stash of the call
	identified bool                     // whether the ids of the process are stored
	timed      bool                     // whether the time is stored
	capturing  bool                     // whether a value is read whose fault is shown with the address
	aside      []int                    // stack offsets of numbers that are kept aside while values are computed
	nested     int                      // how many of them are in use
	followed   int16                    // stack offset of the object that is followed, see compiler.ObjectAddr
	watched    func() []*compiler.Probe // returns the probes of the unit that watch memory
	prefix     string                   // prefix of the labels
	counting
	measuring
	tabling
}

// newProgram begins a program for one side of a probe. Calls are counted for the
// event ev.
func (u *generator) newProgram(c *code, p *compiler.Probe, side compiler.Side, kind compiler.Kind, ev *compiler.EventType, opts options) *program {
	prefix, loads, order := "entry_", p.EntryLoads, p.EntryOrder
	if side == compiler.AtReturn {
		prefix, loads, order = "return_", p.ReturnLoads, p.ReturnOrder
	}
	number := ev.Number
	if kind.Multi() {
		number -= u.first[p]
	}
	prog := &program{
		code: c, kind: kind, side: side, probe: p, event: ev, number: number, opts: opts, loads: loads, order: order,
		saved: map[*compiler.Value]int{}, free: spFlags, prefix: prefix, ptr: rBase, index: u.index[p],
		measuring: measuring{element: u.Elements[p]}, threads: &u.threads, function: u.first[p],
		tabling: tabling{table: u.tables[p]},
	}
	if p.Stash || p.Chain != nil {
		prog.free = spFree
	}
	prog.layout = u.Counters
	prog.rejected = prog.countRejected
	prog.fates = []int{number}
	return prog
}

// begin saves the context and leaves for processes that are not traced.
func (p *program) begin() {
	if p.kind != compiler.KprobeSession {
		p.step("%s %s", p.kind, p.probe.Func.Name)
		p.emit(asm.Mov.Reg(rContext, asm.R1))
	}
	if p.probe.Watch != nil {
		p.readWatched()
	}
	p.returns = p.number
	if s := p.keeps; s != nil && s.event != nil { // nil of a chain
		p.returns += s.event.Number - p.event.Number
	}
	p.beginCounting()
	if p.forgetsStale() {
		p.later(p.prefix+"stale", p.forgetStale)
	}
	p.filter()
	p.known = p.identified
	switch p.probe.Measure {
	case compiler.NoMeasure:
	case compiler.Tables:
		p.reserveKey()
	default:
		p.first = p.room(compiler.FirstSize)
	}
	p.reserveAside()
	p.reserveWalk()
	if guarded(p.probe, p.kind) {
		p.enterBusy()
	}
}

// entry generates the entry side, which writes an event, or keeps values, or
// both.
func (p *program) entry(event bool, s *stash) {
	p.keeps = s
	p.begin()
	p.conds(p.order)
	p.admit()
	p.setOutcomes()
	if event && s != nil && s.event.Layout.Start != 0 {
		p.keepTime()
	}
	if event {
		p.report(func() { p.write(p.event.Items) })
	}
	if s != nil {
		p.keep(s)
	}
	p.end()
}

// ret generates the return side, which writes an event with the values kept at
// entry, if any.
func (p *program) ret(s *stash) {
	p.stash = s
	p.begin()
	if s == nil {
		p.conds(p.order)
	} else {
		p.frame()
		p.dropUnfound()
		known, kept := splitConds(p.order, needsEntry)
		p.conds(known)
		p.recall(s)
		kept, changed := splitConds(kept, readsAgain)
		p.conds(kept)
		p.readAgain()
		p.conds(changed)
	}
	p.admit()
	items := p.event.Items
	if s != nil {
		items = p.probe.Return
	}
	p.readClock(p.probe.Return...)
	p.report(func() { p.write(items) })
	if s != nil {
		p.drop()
	}
	p.end()
}

// splitConds separates the conditions that are late from the others. One that may meet
// a fault stays behind the late ones that come before it.
func splitConds(conds []compiler.Cond, late func(compiler.Cond) bool) (early, behind []compiler.Cond) {
	for _, t := range conds {
		if late(t) || len(behind) > 0 && compiler.MayFault(t) {
			behind = append(behind, t)
		} else {
			early = append(early, t)
		}
	}
	return early, behind
}

// needsEntry reports whether a condition at return needs values kept from entry. For
// calls that the others reject, the stash is not looked up.
func needsEntry(t compiler.Cond) bool {
	switch t := t.(type) {
	case *compiler.Outcome:
		return true
	case *compiler.Leaf:
		for v := range t.Value.Values {
			if v.Base.Builtin == compiler.Duration || v.Side == compiler.AtEntry {
				return true
			}
		}
	case compiler.AllOf:
		return slices.ContainsFunc(t, needsEntry)
	case compiler.AnyOf:
		return slices.ContainsFunc(t, needsEntry)
	}
	return false
}

// exitLabel returns the label of the side's exit. It is not inlined: it has many callers.
//
//go:noinline
func (p *program) exitLabel() string { return p.prefix + "exit" }

// skipLabel returns the exit label for a call whose return side is not needed.
// In a kprobe.session, that side then does not run.
func (p *program) skipLabel() string {
	if p.side == compiler.AtEntry && p.opts.cancels(p.kind) {
		return p.prefix + "skip"
	}
	return p.exitLabel()
}

// unshown returns the label for a call that is not shown, once it is counted.
func (p *program) unshown() string {
	switch {
	case p.forgetsStale():
		return p.prefix + "stale"
	case p.stash == nil:
		return p.skipLabel()
	case p.found:
		return p.prefix + "drop"
	}
	return p.prefix + "dropunfound"
}

// end generates the only exit, and the deferred code.
func (p *program) end() {
	p.label(p.exitLabel())
	p.step("done")
	if guarded(p.probe, p.kind) {
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

// room allocates bytes of the stack frame. It returns 0 if there are not enough
// left.
func (p *program) room(size int) int {
	if p.free-compiler.Align8(size) < -stackSize {
		return 0
	}
	p.free -= compiler.Align8(size)
	return p.free
}
