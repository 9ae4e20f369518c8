package compiler

import (
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

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
	if l.Pred.Op == spec.Mask && l.Pred.Ranges == nil {
		if to.sure && !again {
			p.save(l.Value) // before only some of its bits are left
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

// save keeps the number in R1 for the record. If there is no room, it is read
// again.
func (p *program) save(v *Value) {
	if p.free-8-p.spared() < -stackSize {
		return
	}
	at := p.room(8)
	p.emit(asm.StoreMem(asm.RFP, int16(at), asm.R1, asm.DWord))
	p.saved[v] = at
}

// spared is how many bytes of the stack frame are left for what there must be
// room for.
func (p *program) spared() int {
	n := 0
	if p.probe.Chain != nil {
		n += chainRoom
	}
	if p.keeps != nil && p.keeps.size <= smallStash {
		n += p.keeps.size
	}
	if p.buffer == 0 && comparesText(p.probe) {
		n += textBuffer
	}
	return n
}

func comparesText(p *Probe) bool {
	for l := range leaves(AllOf(slices.Concat(p.EntryTests, p.ReturnTests))) {
		if l.Pred.Pattern != nil {
			return true
		}
	}
	return false
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

// jumps are those that the comparisons take, of unsigned and of signed numbers.
var jumps = [2]map[spec.Op]asm.JumpOp{
	{spec.Eq: asm.JEq, spec.Ne: asm.JNE, spec.Lt: asm.JLT, spec.Le: asm.JLE, spec.Gt: asm.JGT, spec.Ge: asm.JGE},
	{spec.Eq: asm.JEq, spec.Ne: asm.JNE, spec.Lt: asm.JSLT, spec.Le: asm.JSLE, spec.Gt: asm.JSGT, spec.Ge: asm.JSGE},
}

// inverse is the jump that is taken when the predicate is false.
func inverse(pr *Predicate) asm.JumpOp {
	signed := 0
	if pr.Signed {
		signed = 1
	}
	return jumps[signed][opposites[pr.Op]]
}
