package codegen

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// objectLock is the name of the map whose only element is there while a program adds
// an object, on kernels that cannot compare and exchange a word.
const objectLock = "object_lock"

// addObjects adds the maps of the objects that are followed.
func (u *generator) addObjects(opts options) {
	u.Collection.Maps[compiler.ObjectsMap] = compiler.ObjectsSpec()
	if !opts.Features.CompareExchange {
		u.addMap(objectLock, ebpf.Hash, 4, 4, 1)
	}
}

// compareObjects goes to found if the pointer in R1 is that of an object that is followed,
// and stores the address and the number of the object. If no object is in the pointer's
// bucket, as in most calls, it goes to other. It continues if other objects are there.
func (p *program) compareObjects(found, other string) {
	p.step("is an object in its bucket?")
	p.loadObjects(asm.R2)
	p.emit(asm.Mov.Reg(asm.R3, asm.R1))
	p.objectBucket(asm.R3)
	p.emit(
		asm.LoadMem(asm.R3, asm.R3, compiler.ObjectBuckets, asm.Word),
		asm.JEq.Imm(asm.R3, 0, other),
	)
	p.step("is it followed?")
	p.emit(asm.JEq.Imm(asm.R1, 0, other))
	for i := range compiler.MostObjects {
		p.emit(
			asm.LoadMem(asm.R3, asm.R2, int16(compiler.ObjectAddrs+8*i), asm.DWord),
			asm.JEq.Reg(asm.R3, asm.R1, p.deferred("object", func() { p.seen(i, asm.R1, found) })),
		)
	}
}

// loadObjects points a register to the element of the map of objects. It is not inlined:
// making an instruction takes much code.
//
//go:noinline
func (c *code) loadObjects(dst asm.Register) {
	c.emit(asm.LoadMapValue(dst, 0, 0).WithReference(compiler.ObjectsMap))
}

// objectBucket turns the address in reg into a pointer to its bucket, up to the offset
// [compiler.ObjectBuckets]. R2 points to the element of the map.
func (c *code) objectBucket(reg asm.Register) {
	c.emit(
		asm.RSh.Imm(reg, compiler.BucketShift),
		asm.And.Imm(reg, compiler.BucketMask),
		asm.Add.Reg(reg, asm.R2),
	)
}

// inBucket adds n to the number of objects in the bucket of the address in R1. R2 points
// to the element of the map.
func (c *code) inBucket(n int32) {
	c.emit(asm.Mov.Reg(asm.R3, asm.R1))
	c.objectBucket(asm.R3)
	c.emit(asm.Mov.Imm(asm.R4, n), asm.AddAtomic.Mem(asm.R3, asm.R4, asm.Word, compiler.ObjectBuckets))
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

// unfollow frees the place of the object. The memory is freed after this program,
// so that no other object has its address yet.
func (p *program) unfollow() {
	p.step("it is followed no longer")
	p.loadObjects(asm.R2)
	p.emit(asm.LoadMem(asm.R1, asm.RFP, p.followed+compiler.ObjectAddr, asm.DWord))
	freed, gone := p.fresh("freed"), p.prefix+p.fresh("gone")
	for i := range compiler.MostObjects {
		at := int16(compiler.ObjectAddrs + 8*i)
		place := p.deferred("place", func() {
			p.emit(asm.Mov.Imm(asm.R3, 0), asm.StoreMem(asm.R2, at, asm.R3, asm.DWord), asm.Ja.Label(freed))
		})
		p.emit(asm.LoadMem(asm.R3, asm.R2, at, asm.DWord), asm.JEq.Reg(asm.R3, asm.R1, place))
	}
	p.emit(asm.Ja.Label(gone))
	p.label(freed)
	p.inBucket(-1)
	p.label(gone)
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
	taken := p.fresh("taken")
	p.step("follow it")
	p.lockObjects(full)
	if limit := p.probe.Follow.Limit; limit != 0 {
		p.emit(asm.LoadMem(asm.R1, rBase, compiler.ObjectStarted, asm.DWord))
		p.jump(asm.JGE, asm.R1, uint64(limit), unlocked("enough", out))
	}
	p.emit(asm.LoadMem(asm.R1, asm.RFP, p.followed+compiler.ObjectAddr, asm.DWord))
	other := p.fresh("other")
	p.compareObjects(unlocked("both", again), other)
	p.label(other)
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
			p.emit(asm.Mov.Reg(asm.R2, rBase))
			p.inBucket(1)
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

// publish stores the address in R1, after what was stored before. Without an exchange,
// that needs stores to be seen in their order, as on x86.
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
	p.loadObjects(rBase)
	if p.opts.Features.CompareExchange {
		p.emit(
			asm.Mov.Imm(asm.R0, 0),
			asm.Mov.Imm(asm.R1, 1),
			compareExchange(rBase, asm.R1, compiler.ObjectLock),
			asm.JNE.Imm(asm.R0, 0, busy),
		)
		return
	}
	p.setWord(spKey, 0)
	p.insert(objectLock, spKey, spKey)
	p.emit(asm.JNE.Imm(asm.R0, 0, busy))
}

func (p *program) unlockObjects() {
	if p.opts.Features.CompareExchange {
		p.emit(asm.Mov.Imm(asm.R1, 0), exchange(rBase, asm.R1, compiler.ObjectLock))
		return
	}
	p.setWord(spKey, 0)
	p.callMap(asm.FnMapDeleteElem, objectLock, spKey)
}
