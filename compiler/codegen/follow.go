package codegen

import (
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// objectLock is the name of the map whose only element is there while a program adds
// an object, on kernels that cannot compare and exchange a word.
const objectLock = "object_lock"

// nearby is the largest size of freed memory in which an object is looked for: it is
// compared with the constant before the real size is read.
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
		prog.followed, prog.watched = int16(prog.room(compiler.ObjectPart)), u.Watched()
		prog.step("%s %s", kind, p.Func.Name)
		prog.emit(asm.Mov.Reg(rContext, asm.R1))
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

// addObjects adds the maps of the objects that are followed.
func (u *generator) addObjects(opts options) {
	u.Collection.Maps[compiler.ObjectsMap] = compiler.ObjectsSpec()
	if !opts.Features.CompareExchange {
		u.Collection.Maps[objectLock] = &ebpf.MapSpec{Name: objectLock, Type: ebpf.Hash, KeySize: 4, ValueSize: 4, MaxEntries: 1}
	}
}

// addJoin creates the event of a function that makes an object of another one, and
// returns a function that generates its programs.
func (u *generator) addJoin(i int, p *compiler.Probe, opts options) func() {
	ev := u.event(p, compiler.CallEvent, p.Items(), extras{object: true}, opts)
	s := u.addStash(ev)
	opts.PID, opts.TID, opts.Tree, opts.Cgroup, opts.Self = 0, 0, nil, false, 0
	entry := func(c *code) { u.newProgram(c, p, compiler.AtEntry, p.Attach.Entry, ev, opts).joinEntry(s) }
	ret := func(c *code) { u.newProgram(c, p, compiler.AtReturn, p.Attach.Return, ev, opts).joinReturn(s) }
	return func() { u.sides(i, p, opts, entry, ret) }
}

// joinEntry generates the entry side, which keeps calls that get an object.
func (p *program) joinEntry(s *stash) {
	p.keeps, p.followed = s, int16(p.room(compiler.ObjectPart))
	p.begin()
	p.step("object %s", p.probe.Follow.Object.Name)
	followed := p.prefix + p.fresh("followed")
	p.readScalar(p.probe.Follow.Object, false, true, p.unshown())
	p.emit(asm.JEq.Imm(asm.R1, 0, p.unshown()))
	p.compareObjects(followed)
	p.emit(asm.Ja.Label(p.unshown()))
	p.label(followed)
	p.keep(s)
	p.end()
}

// joinReturn generates the return side, from which on what is returned is followed.
func (p *program) joinReturn(s *stash) {
	p.stash, p.followed = s, int16(p.room(compiler.ObjectPart))
	p.begin()
	p.frame()
	p.dropUnfound()
	p.recall(s)
	drop := p.unshown()
	p.step("what is returned")
	p.readScalar(p.probe.Follow.Result, false, true, drop)
	p.emit(
		asm.JEq.Imm(asm.R1, 0, drop),
		asm.JGE.Imm(asm.R1, -mostErrno, drop),
		asm.StoreMem(asm.RFP, p.followed+compiler.ObjectAddr, asm.R1, asm.DWord),
	)
	p.compareObjects(drop)
	p.follow(drop, drop)
	p.line()
	p.drop()
	p.end()
}

// meet generates the program of a function that gets objects. Most of its calls have
// an object that is not followed, and end after a few comparisons.
func (p *program) meet() {
	p.step("object %s", p.probe.Follow.Object.Name)
	exit := p.exitLabel()
	p.readScalar(p.probe.Follow.Object, false, true, exit)
	p.emit(asm.JEq.Imm(asm.R1, 0, exit))
	p.compareObjects(p.deferred("followed", func() { p.line(); p.emit(asm.Ja.Label(exit)) }))
}

// start generates the program from whose matching calls on an object is followed.
func (p *program) start() {
	exit, line := p.exitLabel(), p.prefix+"line"
	again := exit // an object that is watched is found once
	if p.probe.Find == nil {
		again = p.deferred("followed", func() {
			p.saved, p.identified = map[*compiler.Value]int{}, false // the conditions were not evaluated
			p.line()
			p.emit(asm.Ja.Label(exit))
		})
	}
	p.step("object %s", p.probe.Follow.Object.Name)
	p.readScalar(p.probe.Follow.Object, false, true, exit)
	p.emit(
		asm.JEq.Imm(asm.R1, 0, exit),
		asm.JGE.Imm(asm.R1, -mostErrno, exit),
		asm.StoreMem(asm.RFP, p.followed+compiler.ObjectAddr, asm.R1, asm.DWord),
	)
	p.compareObjects(again)
	p.filter()
	if p.mixed = hasAlternatives(p.probe.EntryConds) || hasAlternatives(p.probe.ReturnConds); p.mixed {
		p.step("no fault met")
		p.setWord(spFault, 0)
	}
	p.conds(slices.Concat(p.probe.EntryConds, p.probe.ReturnConds))
	p.admit()
	p.follow(again, exit)
	p.label(line)
	p.line()
}

// freedMemory generates the program of a tracepoint at which memory is freed. Mostly
// no object is near it, and nothing more is asked.
func (p *program) freedMemory() {
	f, exit := p.probe.Follow, p.exitLabel()
	p.step("freed memory")
	p.readScalar(f.Object, false, true, exit)
	p.emit(asm.JEq.Imm(asm.R1, 0, exit))
	if f.Size == nil {
		p.compareObjects(p.deferred("freed", func() { p.line(); p.emit(asm.Ja.Label(exit)) }))
		return
	}
	near := p.deferred("near", func() { p.endInside(f.Size) })
	p.step("is an object there?")
	p.emit(asm.LoadMapValue(asm.R2, 0, 0).WithReference(compiler.ObjectsMap))
	for i := range compiler.MostObjects {
		p.emit(
			asm.LoadMem(asm.R3, asm.R2, int16(compiler.ObjectAddrs+8*i), asm.DWord),
			asm.Sub.Reg(asm.R3, asm.R1),
			asm.JLT.Imm(asm.R3, nearby, near),
		)
	}
}

// endInside ends each object in the memory that is freed at the address in R1. One that
// is near it may lie behind its end, and others inside.
func (p *program) endInside(size *compiler.Value) {
	freed, bytes := int16(p.room(8)), int16(p.room(8))
	loop, next := p.prefix+p.fresh("inside"), p.prefix+p.fresh("nextinside")
	p.step("how much is freed?")
	p.emit(asm.StoreMem(asm.RFP, freed, asm.R1, asm.DWord))
	p.readScalar(size, p.direct(size), true, p.exitLabel())
	p.emit(
		asm.StoreMem(asm.RFP, bytes, asm.R1, asm.DWord),
		asm.Mov.Imm(rStash, 0), // offset of the object's place
	)
	p.label(loop)
	p.step("is it in what is freed?")
	p.emit(
		asm.LoadMapValue(asm.R2, 0, 0).WithReference(compiler.ObjectsMap),
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
	p.emit(
		asm.Add.Imm(rStash, 8),
		asm.JLT.Imm(rStash, 8*compiler.MostObjects, loop),
		asm.Ja.Label(p.exitLabel()),
	)
}

// deferred defers code and returns its label, which is new.
func (p *program) deferred(hint string, emit func()) string {
	label := p.prefix + p.fresh(hint)
	p.later(label, emit)
	return label
}

// compareObjects goes to found if the pointer in R1 is that of an object that is followed.
// It stores the address and the number of the object.
func (p *program) compareObjects(found string) {
	p.step("is it followed?")
	p.emit(asm.LoadMapValue(asm.R2, 0, 0).WithReference(compiler.ObjectsMap))
	for i := range compiler.MostObjects {
		p.emit(
			asm.LoadMem(asm.R3, asm.R2, int16(compiler.ObjectAddrs+8*i), asm.DWord),
			asm.JEq.Reg(asm.R3, asm.R1, p.deferred("object", func() { p.seen(i, asm.R1, found) })),
		)
	}
}

// seen stores the number of the object at place i of the map's element, to which R2
// points, and its address, which is in a register. It continues at next.
func (p *program) seen(i int, addr asm.Register, next string) {
	p.emit(
		asm.StoreMem(asm.RFP, p.followed+compiler.ObjectAddr, addr, asm.DWord),
		asm.LoadMem(asm.R3, asm.R2, int16(compiler.ObjectNumbers+8*i), asm.DWord),
		asm.StoreMem(asm.RFP, p.followed+compiler.ObjectNumber, asm.R3, asm.DWord),
		asm.Ja.Label(next),
	)
}

// line writes the record of a call that has an object that is followed, and forgets
// the object if it ends.
func (p *program) line() {
	if !p.identified {
		p.identify()
	}
	items := p.event.Items
	if p.stash != nil {
		items = p.probe.Return
	}
	p.record(items, func() {
		p.header()
		p.step("the object")
		for _, word := range []int{compiler.ObjectAddr, compiler.ObjectNumber} {
			p.emit(
				asm.LoadMem(asm.R1, asm.RFP, p.followed+int16(word), asm.DWord),
				asm.StoreMem(rOut, p.out(p.event.Layout.Object+word), asm.R1, asm.DWord),
			)
		}
		p.fill()
	})
	switch f := p.probe.Follow; {
	case p.numbered() && (f.Role == compiler.Meets || f.Role == compiler.Ends):
		p.step("does it end?")
		meets := p.prefix + p.fresh("meets")
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

// cookieEnds is the bit of a link's cookie that tells that a function ends the objects
// that it gets. Functions that only get them can so have the same program, which asks
// after a comparison has found an object.
const cookieEnds = 47

// unfollow frees the places of the object. The memory is freed after this program,
// so that no other object has its address yet.
func (p *program) unfollow() {
	p.keepLast()
	p.step("it is followed no longer")
	p.emit(
		asm.LoadMem(asm.R1, asm.RFP, p.followed+compiler.ObjectAddr, asm.DWord),
		asm.LoadMapValue(asm.R2, 0, 0).WithReference(compiler.ObjectsMap),
		asm.Mov.Imm(asm.R4, 0),
	)
	for i := range compiler.MostObjects {
		at, other := int16(compiler.ObjectAddrs+8*i), p.prefix+p.fresh("other")
		p.emit(
			asm.LoadMem(asm.R3, asm.R2, at, asm.DWord),
			asm.JNE.Reg(asm.R3, asm.R1, other),
			asm.StoreMem(asm.R2, at, asm.R4, asm.DWord),
		)
		p.label(other)
	}
}

// follow adds the object whose address is stored to those that are followed. Only one
// program does this at a time. Another one does not wait, as it may have interrupted
// the first: its object is counted as one without room. If another program has added
// the same object meanwhile, it goes to again; without room, to out.
func (p *program) follow(again, out string) {
	full := p.counted("full", compiler.CounterNoRoom, out)
	unlocked := func(hint, next string) string {
		return p.deferred(hint, func() {
			p.unlockObjects()
			p.emit(asm.Ja.Label(next))
		})
	}
	taken := p.prefix + p.fresh("taken")
	p.step("follow it")
	p.lockObjects(full)
	if limit := p.probe.Follow.Limit; limit != 0 {
		p.emit(asm.LoadMem(asm.R1, rBase, compiler.ObjectStarted, asm.DWord))
		p.jump(asm.JGE, asm.R1, uint64(limit), unlocked("enough", out))
	}
	p.emit(asm.LoadMem(asm.R1, asm.RFP, p.followed+compiler.ObjectAddr, asm.DWord))
	p.compareObjects(unlocked("both", again))
	p.step("a free place")
	for i := range compiler.MostObjects {
		place := p.deferred("place", func() {
			p.emit(
				asm.LoadMem(asm.R2, rBase, compiler.ObjectLast, asm.DWord),
				asm.Add.Imm(asm.R2, 1),
				asm.StoreMem(rBase, compiler.ObjectLast, asm.R2, asm.DWord),
				asm.StoreMem(rBase, int16(compiler.ObjectNumbers+8*i), asm.R2, asm.DWord),
				asm.StoreMem(asm.RFP, p.followed+compiler.ObjectNumber, asm.R2, asm.DWord),
			)
			p.publish(int16(compiler.ObjectAddrs + 8*i))
			p.emit(asm.Ja.Label(taken))
		})
		p.emit(
			asm.LoadMem(asm.R3, rBase, int16(compiler.ObjectAddrs+8*i), asm.DWord),
			asm.JEq.Imm(asm.R3, 0, place),
		)
	}
	p.emit(asm.Ja.Label(unlocked("nofree", full)))
	p.label(taken)
	if p.probe.Follow.Role == compiler.Starts {
		p.emit(
			asm.LoadMem(asm.R2, rBase, compiler.ObjectStarted, asm.DWord),
			asm.Add.Imm(asm.R2, 1),
			asm.StoreMem(rBase, compiler.ObjectStarted, asm.R2, asm.DWord),
		)
	}
	p.unlockObjects()
}

// publish stores the address in R1, after what was stored before: stores are seen in
// their order on x86, the only machine on which kernels cannot exchange words.
func (p *program) publish(at int16) {
	if p.opts.Features.CompareExchange {
		p.emit(exchange(rBase, asm.R1, at))
		return
	}
	p.emit(asm.StoreMem(rBase, at, asm.R1, asm.DWord))
}

// lockObjects keeps other programs from adding objects, or goes to busy if one is
// doing so. It points rBase to the element of the map.
func (p *program) lockObjects(busy string) {
	p.emit(asm.LoadMapValue(rBase, 0, 0).WithReference(compiler.ObjectsMap))
	if p.opts.Features.CompareExchange {
		p.emit(
			asm.Mov.Imm(asm.R0, 0),
			asm.Mov.Imm(asm.R1, 1),
			compareExchange(rBase, asm.R1, compiler.ObjectLock),
			asm.JNE.Imm(asm.R0, 0, busy),
		)
		return
	}
	p.objectLockKey()
	p.move(asm.R3, asm.RFP, spKey)
	p.emit(asm.Mov.Imm(asm.R4, int32(ebpf.UpdateNoExist)), asm.FnMapUpdateElem.Call(), asm.JNE.Imm(asm.R0, 0, busy))
}

func (p *program) unlockObjects() {
	if p.opts.Features.CompareExchange {
		p.emit(asm.Mov.Imm(asm.R1, 0), exchange(rBase, asm.R1, compiler.ObjectLock))
		return
	}
	p.objectLockKey()
	p.emit(asm.FnMapDeleteElem.Call())
}

// objectLockKey loads the first arguments of a call about the element of the map
// objectLock.
func (p *program) objectLockKey() {
	p.setWord(spKey, 0)
	p.emit(mapPtr(asm.R1, objectLock))
	p.move(asm.R2, asm.RFP, spKey)
}
