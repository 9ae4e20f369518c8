package compiler

import (
	"cmp"
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// hasAlternatives says whether one of the tests has an "or" in it.
func hasAlternatives(tests []Test) bool {
	return slices.ContainsFunc(tests, func(t Test) bool {
		switch t := t.(type) {
		case AnyOf:
			return true
		case AllOf:
			return hasAlternatives(t)
		case *Flag:
			return hasAlternatives([]Test{t.Test})
		}
		return false
	})
}

// tests leaves unless all tests hold, the cheapest first.
func (p *program) tests(tests []Test) {
	if len(tests) == 0 {
		return
	}
	sorted := slices.Clone(tests)
	slices.SortStableFunc(sorted, func(a, b Test) int { return cmp.Compare(p.cost(a), p.cost(b)) })
	unread := p.countedUnreadable()
	no := p.reject()
	if p.mixed {
		no = p.prefix + p.fresh("no")
		p.later(no, func() {
			p.step("rejected; by a fault?")
			p.emit(
				asm.LoadMem(asm.R1, asm.RFP, spFault, asm.DWord),
				asm.JNE.Imm(asm.R1, 0, unread),
				asm.Ja.Label(p.reject()),
			)
		})
	}
	for _, t := range sorted {
		p.branch(t, outcome{no: no, unread: unread, sure: true})
	}
}

// countedUnreadable is the label of code that counts a fault and rejects the
// call. A call that was rejected at entry does not count.
func (p *program) countedUnreadable() string {
	if p.stash == nil || p.found {
		return p.counted("unreadable", counterUnreadable, p.reject())
	}
	label := p.prefix + p.fresh("unreadable")
	p.later(label, func() {
		p.find(p.stash, rStash, p.exitLabel())
		p.count(counterUnreadable, p.reject())
	})
	return label
}

// outcome is where a test goes that does not hold.
type outcome struct {
	no     string // it does not hold
	unread string // a value could not be read
	sure   bool   // every call that passes all tests evaluates this one
}

// branch goes on if a test holds.
func (p *program) branch(t Test, to outcome) {
	switch t := t.(type) {
	case *Leaf:
		p.leaf(t, to)
	case AllOf:
		for _, part := range t {
			p.branch(part, to)
		}
	case AnyOf:
		p.anyOf(t, to)
	case *Flag:
		p.step("%s", "tested at entry")
		p.emit(asm.LoadMem(asm.R1, rStash, int16(p.stash.flags), asm.DWord))
		p.jumpUnlessBits(1<<t.Bit, to.no)
	}
}

// anyOf tries one test after the other. A fault in one is noted, and counts if
// none of the others holds.
func (p *program) anyOf(tests AnyOf, to outcome) {
	yes := p.prefix + p.fresh("yes")
	for i, t := range tests {
		last := i == len(tests)-1
		next := outcome{no: to.no, unread: to.unread}
		if !last {
			next.no = p.prefix + p.fresh("or")
			next.unread = p.noted(next.no)
		}
		p.branch(t, next)
		if !last {
			p.emit(asm.Ja.Label(yes))
			p.label(next.no)
		}
	}
	p.label(yes)
}

// noted is the label of code that notes a fault and goes on.
func (p *program) noted(next string) string {
	label := p.prefix + p.fresh("fault")
	p.later(label, func() {
		p.setWord(spFault, 1)
		p.emit(asm.Ja.Label(next))
	})
	return label
}

// needsEntry says whether a test at return needs what was kept of the entry.
func needsEntry(t Test) bool {
	switch t := t.(type) {
	case *Flag:
		return true
	case *Leaf:
		return t.Value.Base.Builtin == Duration
	case AllOf:
		return slices.ContainsFunc(t, needsEntry)
	case AnyOf:
		return slices.ContainsFunc(t, needsEntry)
	}
	return false
}

// setFlags makes the tests at entry that the return wants to know of.
func (p *program) setFlags() {
	if len(p.probe.Flags) == 0 {
		return
	}
	p.step("outcomes of tests for the return")
	p.setWord(spFlags, 0)
	for _, f := range p.probe.Flags {
		no := p.prefix + p.fresh("unset")
		p.branch(f.Test, outcome{no: no, unread: p.noted(no)})
		p.emit(
			asm.LoadImm(asm.R2, 1<<f.Bit, asm.DWord),
			asm.LoadMem(asm.R1, asm.RFP, spFlags, asm.DWord),
			asm.Or.Reg(asm.R1, asm.R2),
			asm.StoreMem(asm.RFP, spFlags, asm.R1, asm.DWord),
		)
		p.label(no)
	}
	p.step("a fault met")
	p.emit(
		asm.LoadMem(asm.R2, asm.RFP, spFault, asm.DWord),
		asm.LSh.Imm(asm.R2, faultFlag),
		asm.LoadMem(asm.R1, asm.RFP, spFlags, asm.DWord),
		asm.Or.Reg(asm.R1, asm.R2),
		asm.StoreMem(asm.RFP, spFlags, asm.R1, asm.DWord),
	)
}

// faultFlag is the bit of the flags that says that a test at entry met a fault.
const faultFlag = 63

// recallFault notes for the return that a test at entry met a fault.
func (p *program) recallFault() {
	if len(p.probe.Flags) == 0 {
		return
	}
	p.step("a fault met at entry")
	p.emit(
		asm.LoadMem(asm.R1, rStash, int16(p.stash.flags), asm.DWord),
		asm.RSh.Imm(asm.R1, faultFlag),
		asm.StoreMem(asm.RFP, spFault, asm.R1, asm.DWord),
	)
}

// cost orders tests by what reading their values takes.
func (p *program) cost(t Test) int {
	total := 0
	for l := range leaves(t) {
		v := l.Value
		switch {
		case l.Pred.Pattern != nil:
			total += 1000
		case p.direct(v):
			total += len(v.Path)
		default:
			total += 100 * len(v.Path)
		}
	}
	return total
}

// direct says whether a value is read by plain loads. Arguments of tracepoints
// may be NULL without the verifier letting us test for it in our way (6.13).
func (p *program) direct(v *Value) bool {
	return (p.kind == Fentry || p.kind == Fexit) && v.direct()
}

func (p *program) leaf(l *Leaf, to outcome) {
	p.step("%s", l.Pred.Text)
	if l.Pred.Pattern != nil {
		p.textLeaf(l, to)
		return
	}
	at, again := p.saved[l.Value]
	if again {
		p.emit(asm.LoadMem(asm.R1, asm.RFP, int16(at), asm.DWord))
	} else {
		p.ptr = rOut // it is free, and a register less is saved and restored
		p.readScalar(l.Value, p.direct(l.Value), l.Pred.holds(0), to.unread)
		p.ptr = rBase
	}
	if l.Pred.Op == spec.Mask {
		if to.sure && !again {
			p.save(l.Value) // before only some of its bits are left
		}
		p.jumpMask(l.Pred, to.no)
		return
	}
	p.jump(inverse(l.Pred), asm.R1, l.Pred.Const, to.no)
	if to.sure && !again {
		p.save(l.Value)
	}
}

// save keeps the number in R1 for the record. If there is no room, it is read
// again.
func (p *program) save(v *Value) {
	if at := p.room(8); at != 0 {
		p.emit(asm.StoreMem(asm.RFP, int16(at), asm.R1, asm.DWord))
		p.saved[v] = at
	}
}

func (p *program) jumpMask(pred *Predicate, no string) {
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

// bits leaves in R1 those of its bits that the mask has.
func (p *program) bits(mask uint64) {
	if mask>>31 == 0 {
		p.emit(asm.And.Imm(asm.R1, int32(mask)))
		return
	}
	p.emit(asm.LoadImm(asm.R2, int64(mask), asm.DWord), asm.And.Reg(asm.R1, asm.R2))
}

// inverse is the jump that is taken when the predicate is false.
func inverse(pr *Predicate) asm.JumpOp {
	if pr.Signed {
		switch pr.Op {
		case spec.Lt:
			return asm.JSGE
		case spec.Le:
			return asm.JSGT
		case spec.Gt:
			return asm.JSLE
		case spec.Ge:
			return asm.JSLT
		}
	}
	switch pr.Op {
	case spec.Eq:
		return asm.JNE
	case spec.Ne:
		return asm.JEq
	case spec.Lt:
		return asm.JGE
	case spec.Le:
		return asm.JGT
	case spec.Gt:
		return asm.JLE
	default:
		return asm.JLT
	}
}
