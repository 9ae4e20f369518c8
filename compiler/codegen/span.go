package codegen

import (
	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// addPoint creates the event of one point of a span, and with the second one the
// map between them. It returns a function that generates the program of the point.
func (u *generator) addPoint(i int, p *compiler.Probe, opts options) func() {
	b := u.spans[p.Span]
	if b == nil {
		b = &beginnings{number: len(u.spans)}
		u.spans[p.Span] = b
	}
	kind, side := p.Attach.Entry, compiler.AtEntry
	if p.OnReturn {
		kind, side = p.Attach.Return, compiler.AtReturn
	}
	if p.Begins() {
		b.begin = u.event(p, compiler.BeginEvent, nil, extras{}, opts)
	} else {
		items := append(p.Span.Begin.Items(), p.Items()...)
		b.event = u.event(p, compiler.SpanEvent, items, extras{begin: true, start: true}, opts)
		u.addBeginnings(b, opts)
	}
	generate := func(c *code) {
		prog := u.newPoint(c, p, side, kind, b, opts)
		if p.Begins() {
			prog.beginSpan()
		} else {
			prog.endSpan()
		}
	}
	return func() { u.sides(i, p, opts, generate, generate) }
}

// newPoint begins the program of a point. Only beginnings are chosen by process:
// an end may be in an interrupt, or in another process.
func (u *generator) newPoint(c *code, p *compiler.Probe, side compiler.Side, kind compiler.Kind, b *beginnings, opts options) *program {
	ev := b.begin
	if p.Ends() {
		ev = b.event
		opts = opts.ofAllProcesses()
	}
	prog := u.newProgram(c, p, side, kind, ev, opts)
	prog.number, prog.fixed = ev.Number, true
	prog.fates = []int{ev.Number}
	prog.span, prog.table = b, u.tables[p.Span.End]
	return prog
}

// started returns the offset from rStash of the time from which $duration counts.
func (p *program) started() int {
	if p.span != nil {
		return p.span.start()
	}
	return p.stash.start
}

// beginSpan generates the program at the beginning: it writes an entry of the map.
func (p *program) beginSpan() {
	b := p.span
	p.begin()
	w := p.reserveWaiting()
	p.conds(p.order)
	p.admit()
	p.seek(w)
	p.countMatched()
	p.takeAll(w, true)
	p.takeFree(w)
	p.step("the beginning")
	p.entryAt(rOut, w.found)
	p.event, p.origin = b.event, b.origin
	l := &b.event.Layout
	p.copyWord(rOut, waitKey, asm.RFP, w.key)
	p.copyWord(rOut, p.out(l.Begin+compiler.BeginPIDTID), asm.RFP, spPIDTID)
	p.emit(
		asm.FnGetSmpProcessorId.Call(),
		asm.StoreMem(rOut, p.out(l.Begin+compiler.BeginCPU), asm.R0, asm.DWord),
		asm.FnKtimeGetNs.Call(),
		asm.StoreMem(rOut, p.out(l.Start), asm.R0, asm.DWord),
	)
	p.comm(rOut, l.Begin+compiler.BeginComm-p.origin)
	p.clearFaults()
	p.capture(p.probe.Items())
	p.numberStacks()
	p.step("it can be found")
	p.emit(asm.LoadMem(asm.R1, rOut, p.out(l.Start), asm.DWord))
	p.setState(rOut, asm.R1)
	p.end()
}

// endSpan generates the program at the end: it takes the beginning out of the map
// and writes the event.
func (p *program) endSpan() {
	p.begin()
	w := p.reserveWaiting()
	early, late := p.splitDuration()
	p.conds(early)
	p.admit()
	p.seek(w)
	p.takeAll(w, false)
	p.step("is there a beginning?")
	p.emit(asm.LoadMem(asm.R1, asm.RFP, w.found, asm.DWord), asm.JSLT.Imm(asm.R1, 0, p.reject()))
	p.entryAt(rStash, w.found)
	p.addBegun(compiler.CounterOpen, -1)
	release := p.prefix + "release"
	p.lateConds(late, release)
	p.readClock(p.probe.Items()...)
	p.report(func() { p.limit(p.recordSpan) })
	p.label(release)
	p.step("the entry is free")
	p.emit(asm.Mov.Imm(asm.R1, stateFree))
	p.setState(rStash, asm.R1)
	p.end()
}

// recordSpan writes the event with what is in the entry at rStash.
func (p *program) recordSpan() {
	b := p.span
	p.record(p.probe.Items(), func() {
		p.header()
		p.step("what the beginning knew")
		p.copyKept(b.origin+waitRun, rStash, waitRun, b.run-waitRun)
	})
}

// splitDuration separates the conditions that need no beginning from those on the
// duration. The former decide whether the call ends anything.
func (p *program) splitDuration() (early, late []compiler.Cond) {
	for _, c := range p.order {
		timed := false
		for l := range compiler.Leaves(c) {
			timed = timed || isDuration(l.Value)
		}
		if timed {
			late = append(late, c)
		} else {
			early = append(early, c)
		}
	}
	return early, late
}

// lateConds goes to release unless the conditions hold, and counts the call as filtered
// or unreadable.
func (p *program) lateConds(conds []compiler.Cond, release string) {
	unreadable, filtered := p.prefix+"lateunreadable", release
	if p.opts.CountCalls {
		filtered = p.prefix + "latefiltered"
		p.later(filtered, func() { p.count(compiler.CounterFiltered, release) })
	}
	p.later(unreadable, func() { p.count(compiler.CounterUnreadable, filtered) })
	for _, c := range conds {
		p.readClockFor(c)
		p.branch(c, otherwise{no: filtered, unreadable: unreadable})
	}
}

// numberStacks stores the numbers of the stacks by which the spans are counted, and
// -1 for one that has none.
func (p *program) numberStacks() {
	for _, v := range p.span.event.Kept() {
		at, ok := p.span.stacks[v]
		if !ok {
			continue
		}
		p.step("number of %s", v.Name)
		none, numbered := p.fresh("nonumber"), p.prefix+p.fresh("numbered")
		p.stackNumber(rOut, at, none)
		p.label(numbered)
		p.later(none, func() {
			p.emit(asm.Mov.Imm(asm.R1, -1), asm.StoreMem(rOut, int16(at), asm.R1, asm.DWord), asm.Ja.Label(numbered))
		})
	}
}

// begunStackNumber stores in the key the number of the stack at the beginning.
func (p *program) begunStackNumber(v *compiler.Value, at int, full string) {
	from := p.span.stacks[v]
	p.emit(asm.LoadMem(asm.R1, rStash, int16(from), asm.DWord), asm.JSLT.Imm(asm.R1, 0, full))
	for i := 0; i < compiler.KeyRoom(v); i += 8 {
		p.copyWord(asm.RFP, int16(at+i), rStash, int16(from+i))
	}
}

// copyBegunStack copies the stack at the beginning to the row at rOut.
func (p *program) copyBegunStack(v *compiler.Value, at int) {
	size, _, _ := p.keptAt(v)
	p.copyWord(rOut, int16(at), rStash, size)
	from, n := p.keptBytes(v)
	p.copyKept(at+8, rStash, from, min(stackBytes, n))
}
