package codegen

import (
	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// nearby is the number of bytes after the address of freed memory in which an object is
// looked for first. The real size is read only if one is there.
const nearby = 64 << 10

// addFollow creates the event of a probe that follows objects, and returns a function
// that generates its program.
func (u *generator) addFollow(i int, p *compiler.Probe, opts options) func() {
	u.addObjects(opts)
	opts.CountCalls = false // most calls have other objects
	if p.Follow.Role == compiler.Joins {
		return u.addJoin(i, p, opts)
	}
	kind, side, shows := p.Attach.Entry, compiler.AtEntry, compiler.EntryEvent
	if p.OnReturn {
		kind, side, shows = p.Attach.Return, compiler.AtReturn, compiler.ReturnEvent
	}
	ev := u.event(p, shows, p.Items(), extras{object: true}, opts)
	generate := func(c *code) {
		prog := u.newProgram(c, p, side, kind, ev, opts)
		prog.followed, prog.watched = int16(prog.room(compiler.ObjectPart)), u.Watched
		prog.step("%s %s", kind, p.Func.Name)
		prog.emit(asm.Mov.Reg(rContext, asm.R1))
		prog.reserveAside()
		prog.reserveWalk()
		switch p.Follow.Role {
		case compiler.Starts:
			prog.start()
		case compiler.Frees:
			prog.freedMemory()
		default:
			prog.meet()
		}
		prog.end()
	}
	return func() { u.sides(i, p, opts, generate, generate) }
}

// addJoin creates the event of a function that makes an object of another one, and
// returns a function that generates its programs.
func (u *generator) addJoin(i int, p *compiler.Probe, opts options) func() {
	ev := u.event(p, compiler.CallEvent, p.Items(), extras{object: true}, opts)
	s := u.addStash(ev)
	opts = opts.ofAllProcesses()
	entry := func(c *code) { u.newProgram(c, p, compiler.AtEntry, p.Attach.Entry, ev, opts).joinEntry(s) }
	ret := func(c *code) { u.newProgram(c, p, compiler.AtReturn, p.Attach.Return, ev, opts).joinReturn(s) }
	return func() { u.sides(i, p, opts, entry, ret) }
}

// joinEntry generates the entry side, which keeps calls that get an object.
func (p *program) joinEntry(s *stash) {
	p.keeps, p.followed = s, int16(p.room(compiler.ObjectPart))
	p.begin()
	p.step("object %s", p.probe.Follow.Object.Name)
	followed := p.fresh("followed")
	p.readScalar(p.probe.Follow.Object, false, true, p.unshown())
	p.compareObjects(followed, p.unshown())
	p.emit(asm.Ja.Label(p.unshown()))
	p.label(followed)
	p.keep(s)
	p.end()
}

// joinReturn generates the return side, which begins to follow what is returned.
func (p *program) joinReturn(s *stash) {
	p.stash, p.followed = s, int16(p.room(compiler.ObjectPart))
	p.begin()
	p.frame()
	p.dropUnfound()
	p.recall(s)
	drop := p.unshown()
	p.step("what is returned")
	p.newObject(p.probe.Follow.Result, drop, drop)
	p.follow(drop, drop)
	p.line()
	p.drop()
	p.end()
}

// newObject stores the address of an object that is not followed yet. It goes to again if
// the object is followed already, and to none if there is no object.
func (p *program) newObject(v *compiler.Value, again, none string) {
	p.readScalar(v, false, true, none)
	p.emit(
		asm.JEq.Imm(asm.R1, 0, none),
		asm.JGE.Imm(asm.R1, -compiler.MaxErrno, none),
		asm.StoreMem(asm.RFP, p.followed+compiler.ObjectAddr, asm.R1, asm.DWord),
	)
	other := p.fresh("other")
	p.compareObjects(again, other)
	p.label(other)
}

// meet generates the program of a function that gets objects. Most of its calls have
// an object that is not followed, and end after a few comparisons.
func (p *program) meet() {
	p.step("object %s", p.probe.Follow.Object.Name)
	exit := p.exitLabel()
	p.readScalar(p.probe.Follow.Object, false, true, exit)
	p.compareObjects(p.deferred("followed", func() { p.line(); p.emit(asm.Ja.Label(exit)) }), exit)
}

// start generates the program that begins to follow the objects of matching calls.
func (p *program) start() {
	exit := p.exitLabel()
	again := exit // an object that is watched is found once
	if p.probe.Find == nil {
		again = p.deferred("followed", func() {
			p.saved, p.identified = map[*compiler.Value]int{}, false // the conditions were not evaluated
			p.line()
			p.emit(asm.Ja.Label(exit))
		})
	}
	p.step("object %s", p.probe.Follow.Object.Name)
	p.newObject(p.probe.Follow.Object, again, exit)
	p.filter()
	p.conds(p.order)
	p.admit()
	p.follow(again, exit)
	p.line()
}

// freedMemory generates the program of a tracepoint at which memory is freed. Mostly
// no object is near that memory, and the program ends.
func (p *program) freedMemory() {
	f, exit := p.probe.Follow, p.exitLabel()
	p.step("freed memory")
	p.readScalar(f.Object, false, true, exit)
	if f.Size == nil {
		p.compareObjects(p.deferred("freed", func() { p.line(); p.emit(asm.Ja.Label(exit)) }), exit)
		return
	}
	p.emit(asm.JEq.Imm(asm.R1, 0, exit))
	near := p.deferred("near", func() { p.endInside(f.Size) })
	p.step("is an object there?")
	p.loadObjects(asm.R2)
	for i := range compiler.MostObjects {
		p.emit(
			asm.LoadMem(asm.R3, asm.R2, int16(compiler.ObjectAddrs+8*i), asm.DWord),
			asm.Sub.Reg(asm.R3, asm.R1),
			asm.JLT.Imm(asm.R3, nearby, near),
		)
	}
}

// endInside ends each object in the memory that is freed at the address in R1. An object
// that is near the address may lie after the end of that memory, and several may lie
// inside.
func (p *program) endInside(size *compiler.Value) {
	freed, bytes := int16(p.room(8)), int16(p.room(8))
	loop, next := p.fresh("inside"), p.prefix+p.fresh("nextinside")
	p.step("how much is freed?")
	p.emit(asm.StoreMem(asm.RFP, freed, asm.R1, asm.DWord))
	p.readScalar(size, p.loads.Read(size), true, p.exitLabel())
	p.emit(
		asm.StoreMem(asm.RFP, bytes, asm.R1, asm.DWord),
		asm.Mov.Imm(rStash, 0), // offset of the object's place
	)
	p.label(loop)
	p.step("is it in what is freed?")
	p.loadObjects(asm.R2)
	p.emit(
		asm.Add.Reg(asm.R2, rStash),
		asm.LoadMem(asm.R1, asm.R2, compiler.ObjectAddrs, asm.DWord),
		asm.LoadMem(asm.R3, asm.R2, compiler.ObjectNumbers, asm.DWord),
		asm.StoreMem(asm.RFP, p.followed+compiler.ObjectAddr, asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, p.followed+compiler.ObjectNumber, asm.R3, asm.DWord),
		asm.LoadMem(asm.R3, asm.RFP, freed, asm.DWord),
		asm.Sub.Reg(asm.R1, asm.R3),
		asm.LoadMem(asm.R3, asm.RFP, bytes, asm.DWord),
		asm.JGE.Reg(asm.R1, asm.R3, next),
	)
	p.line()
	p.label(next)
	p.checkpoint(loopJumps)
	p.step("the next object")
	p.emit(
		asm.Add.Imm(rStash, 8),
		asm.JLT.Imm(rStash, 8*compiler.MostObjects, loop),
		asm.Ja.Label(p.exitLabel()),
	)
}

// deferred defers code and returns its label, which is new.
func (p *program) deferred(hint string, emit func()) string {
	label := p.fresh(hint)
	p.later(label, emit)
	return label
}

// line writes the record of a call that has an object that is followed, and forgets
// the object if it ends.
func (p *program) line() {
	if !p.identified {
		p.identify()
	}
	if p.probe.Follow.Ending() {
		p.keepLast()
	}
	items := p.event.Items
	if p.stash != nil {
		items = p.probe.Return
	}
	p.record(items, func() {
		p.header()
		p.step("the object")
		for _, word := range []int{compiler.ObjectAddr, compiler.ObjectNumber} {
			p.copyWord(rOut, p.out(p.event.Layout.Object+word), asm.RFP, p.followed+int16(word))
		}
		p.fill()
	})
	switch f := p.probe.Follow; {
	case p.numbered() && (f.Role == compiler.Meets || f.Role == compiler.Ends):
		p.step("does it end?")
		meets := p.fresh("meets")
		p.emit(
			asm.Mov.Reg(asm.R1, rContext),
			asm.FnGetAttachCookie.Call(),
			asm.RSh.Imm(asm.R0, cookieEnds),
			asm.And.Imm(asm.R0, 1),
			asm.JEq.Imm(asm.R0, 0, meets),
		)
		p.unfollow()
		p.label(meets)
	case f.Ending():
		p.unfollow()
	}
}

// cookieEnds is the bit of a link's cookie that is set if a function ends the objects
// that it gets. So such a function can share its program with others: the program
// asks for the cookie once a comparison has found an object.
const cookieEnds = 47
