package codegen

import (
	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// conds leaves unless all conditions hold.
func (p *program) conds(conds []compiler.Cond) {
	if len(conds) == 0 {
		return
	}
	unreadable, no := p.countedUnreadable(), p.reject()
	for _, t := range conds {
		p.readClockFor(t)
		p.branch(t, otherwise{no: no, unreadable: unreadable, sure: true})
	}
}

// countedUnreadable returns the label of code that counts a fault and rejects
// the call. It does not count a call that was rejected at entry.
func (p *program) countedUnreadable() string {
	label := p.fresh("unreadable")
	if p.stash == nil || p.found {
		p.later(label, func() {
			p.leaveSelf()
			p.count(compiler.CounterUnreadable, p.reject())
		})
		return label
	}
	p.later(label, func() {
		p.find(rStash, spTag, p.exitLabel())
		p.count(compiler.CounterUnreadable, p.reject())
	})
	return label
}

// otherwise has the labels to jump to if a condition does not hold.
type otherwise struct {
	no         string // it does not hold
	unreadable string // a value could not be read
	sure       bool   // every call that meets all conditions evaluates this one
	depth      int    // how many of the "or" around it note faults
}

// branch continues if a condition holds.
func (p *program) branch(t compiler.Cond, to otherwise) {
	switch t := t.(type) {
	case *compiler.Leaf:
		p.leaf(t, to)
	case compiler.AllOf:
		for _, part := range t {
			p.branch(part, to)
		}
	case compiler.AnyOf:
		p.anyOf(t, to)
	case *compiler.Outcome:
		p.step("evaluated at entry")
		p.outcome(t, to)
	}
}

// outcome continues if a condition held at entry.
func (p *program) outcome(t *compiler.Outcome, to otherwise) {
	no := to.no
	if compiler.MayFault(t.Cond) {
		no = p.deferred("unset", func() {
			p.emit(asm.LoadMem(asm.R1, rStash, int16(p.stash.flags), asm.DWord))
			p.jumpUnlessBits(1<<(t.Bit+compiler.MostOutcomes), to.no)
			p.emit(asm.Ja.Label(to.unreadable))
		})
	}
	p.emit(asm.LoadMem(asm.R1, rStash, int16(p.stash.flags), asm.DWord))
	p.jumpUnlessBits(1<<t.Bit, no)
}

// anyOf evaluates the conditions one after the other. It notes a fault in one, which
// counts if none of the others holds. An "or" inside another one notes it in a byte of
// its own; those that are deeper than there are bytes share the last one, which they do
// not clear, so that a fault may count that should not, but none is forgotten.
func (p *program) anyOf(conds compiler.AnyOf, to otherwise) {
	yes, last := p.fresh("yes"), len(conds)-1
	at, no, depth := int16(spFaults+min(to.depth, 7)), to.no, to.depth
	if compiler.MayFault(conds[:last]) {
		if depth <= 7 {
			p.setByte(at, 0)
		}
		depth++
		no = p.deferred("none", func() {
			p.step("none holds; by a fault?")
			p.emit(asm.LoadMem(asm.R1, asm.RFP, at, asm.Byte), asm.JNE.Imm(asm.R1, 0, to.unreadable), asm.Ja.Label(to.no))
		})
	}
	for _, t := range conds[:last] {
		next := p.fresh("or")
		noted := p.deferred("fault", func() {
			p.setByte(at, 1)
			p.emit(asm.Ja.Label(next))
		})
		p.branch(t, otherwise{no: next, unreadable: noted, depth: depth})
		p.emit(asm.Ja.Label(yes))
		p.label(next)
	}
	p.branch(conds[last], otherwise{no: no, unreadable: to.unreadable, depth: depth})
	p.label(yes)
}

// setByte stores a number in a byte of the stack frame.
func (p *program) setByte(at int16, v int32) {
	p.emit(asm.Mov.Imm(asm.R1, v), asm.StoreMem(asm.RFP, at, asm.R1, asm.Byte))
}

func (p *program) leaf(l *compiler.Leaf, to otherwise) {
	p.step("%s", l.Pred.Text)
	switch {
	case l.Value.Before != nil:
		p.diffLeaf(l, to)
		return
	case l.Pred.Pattern != nil:
		p.textLeaf(l, to)
		return
	}
	if of := l.Value.Base.Of; of != nil && of.Compare != 0 {
		p.compareValues(of, l.Pred.Op == spec.Eq, to)
		return
	}
	at, again := p.saved[l.Value]
	if again {
		p.emit(asm.LoadMem(asm.R1, asm.RFP, int16(at), asm.DWord))
	} else {
		p.ptr = rOut // it is free, and using it saves and restores one register less
		p.readScalar(l.Value, p.loads.Read(l.Value), l.Pred.Holds(0), to.unreadable)
		p.ptr = rBase
	}
	if l.Pred.Op == spec.Mask && l.Pred.Ranges == nil {
		if to.sure && !again {
			p.save(l.Value) // before the mask removes bits
		}
		p.jumpMask(l.Pred, to.no)
		return
	}
	if l.Pred.Ranges != nil {
		p.jumpRanges(l.Pred, to.no)
	} else {
		p.jump(inverse(l.Pred), asm.R1, l.Pred.Const, to.no)
	}
	if to.sure && !again {
		p.save(l.Value)
	}
}

// save stores the number in R1 for use in the record. If there is no room, the
// record reads it again.
func (p *program) save(v *compiler.Value) {
	if p.free-8-p.spared() < -stackSize {
		return
	}
	at := p.room(8)
	p.emit(asm.StoreMem(asm.RFP, int16(at), asm.R1, asm.DWord))
	p.saved[v] = at
}

// spared returns the number of bytes of the stack frame to reserve for later
// needs.
func (p *program) spared() int {
	if p.buffer == 0 && comparesText(p.probe) {
		return textBuffer
	}
	return 0
}

func comparesText(p *compiler.Probe) bool {
	for l := range p.Leaves() {
		if l.Pred.Pattern != nil {
			return true
		}
	}
	return false
}

func (p *program) jumpMask(pred *compiler.Predicate, no string) {
	if !pred.Not {
		p.jumpUnlessBits(pred.Const, no)
		return
	}
	p.bits(pred.Const)
	p.emit(asm.JNE.Imm(asm.R1, 0, no))
}

func (p *program) jumpUnlessBits(mask uint64, no string) {
	p.bits(mask)
	p.emit(asm.JEq.Imm(asm.R1, 0, no))
}

// bits clears the bits of R1 that are not in the mask.
func (p *program) bits(mask uint64) {
	if mask>>31 == 0 {
		p.emit(asm.And.Imm(asm.R1, int32(mask)))
		return
	}
	p.emit(asm.LoadImm(asm.R2, int64(mask), asm.DWord), asm.And.Reg(asm.R1, asm.R2))
}

// jumps has the jump instructions of the comparisons, for unsigned and for
// signed numbers.
var jumps = map[bool]map[spec.Op]asm.JumpOp{
	false: {spec.Eq: asm.JEq, spec.Ne: asm.JNE, spec.Lt: asm.JLT, spec.Le: asm.JLE, spec.Gt: asm.JGT, spec.Ge: asm.JGE},
	true:  {spec.Eq: asm.JEq, spec.Ne: asm.JNE, spec.Lt: asm.JSLT, spec.Le: asm.JSLE, spec.Gt: asm.JSGT, spec.Ge: asm.JSGE},
}

// inverse returns the jump that is taken if the predicate is false.
func inverse(pr *compiler.Predicate) asm.JumpOp {
	return jumps[pr.Signed][compiler.Opposites[pr.Op]]
}

// jumpRanges continues if the number in R1 satisfies the predicate's ranges,
// and otherwise jumps to no.
func (p *program) jumpRanges(pred *compiler.Predicate, no string) {
	yes := p.fresh("in")
	if pred.Not {
		p.searchRanges(pred.Ranges, no, yes)
	} else {
		p.searchRanges(pred.Ranges, yes, no)
	}
	p.label(yes)
}

// searchRanges jumps to in if the number in R1 is in one of the sorted ranges,
// and otherwise to out.
func (p *program) searchRanges(ranges []compiler.Range, in, out string) {
	if len(ranges) == 1 {
		p.jump(asm.JLT, asm.R1, ranges[0].Low, out)
		p.jump(asm.JLE, asm.R1, ranges[0].High, in)
		p.emit(asm.Ja.Label(out))
		return
	}
	half := len(ranges) / 2
	upper := p.fresh("upper")
	p.jump(asm.JGE, asm.R1, ranges[half].Low, upper)
	p.searchRanges(ranges[:half], in, out)
	p.label(upper)
	p.searchRanges(ranges[half:], in, out)
}

// setOutcomes evaluates the conditions at entry whose results the return side needs.
func (p *program) setOutcomes() {
	if len(p.probe.Outcomes) == 0 {
		return
	}
	p.step("outcomes of conditions for the return")
	p.setWord(spFlags, 0)
	for _, f := range p.probe.Outcomes {
		no, set := p.fresh("unset"), p.fresh("set")
		open := p.deferred("open", func() {
			p.emit(asm.LoadImm(asm.R2, 1<<(f.Bit+compiler.MostOutcomes), asm.DWord), asm.Ja.Label(set))
		})
		p.branch(f.Cond, otherwise{no: no, unreadable: open})
		p.emit(asm.LoadImm(asm.R2, 1<<f.Bit, asm.DWord))
		p.label(set)
		p.emit(
			asm.LoadMem(asm.R1, asm.RFP, spFlags, asm.DWord),
			asm.Or.Reg(asm.R1, asm.R2),
			asm.StoreMem(asm.RFP, spFlags, asm.R1, asm.DWord),
		)
		p.label(no)
	}
}
