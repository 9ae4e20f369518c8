package codegen

import (
	"math"
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// reserveAside reserves room for the numbers that are kept aside while values are
// computed.
func (p *program) reserveAside() {
	n := 0
	probe := p.probe
	values := slices.Concat(probe.Entry, probe.Return, []*compiler.Value{probe.Measured, probe.First})
	for l := range probe.Leaves() {
		values = append(values, l.Value)
	}
	for _, v := range append(values, probe.SpanKey()) {
		if v != nil {
			n = max(n, v.Nested())
		}
	}
	for range n {
		p.aside = append(p.aside, p.room(8))
	}
}

// operation computes the number of an operation in R1, extended to 64 bits.
func (p *program) operation(o *compiler.Operation, fail string) {
	if n := o.Y.Base.Number; n != nil {
		p.operand(o.X, fail)
		p.byConstant(o, *n)
	} else {
		p.operands(o, fail)
		p.joinRegisters(o)
	}
	p.extend(asm.R1, &o.Type)
}

// operands computes the values of an operation, the first one in R2 and the second
// one in R1.
func (p *program) operands(o *compiler.Operation, fail string) {
	p.operand(o.X, fail)
	at := int16(p.aside[p.nested])
	p.emit(asm.StoreMem(asm.RFP, at, asm.R1, asm.DWord))
	p.nested++
	p.operand(o.Y, fail)
	p.nested--
	p.emit(asm.LoadMem(asm.R2, asm.RFP, at, asm.DWord))
}

// operand loads into R1 a value that another is computed from.
func (p *program) operand(v *compiler.Value, fail string) {
	if i := slices.Index(p.probe.Operands, v); i >= 0 && p.side == compiler.AtReturn && p.stash != nil {
		p.keptOperand(i, fail)
		return
	}
	if at, again := p.saved[v]; again {
		p.emit(asm.LoadMem(asm.R1, asm.RFP, int16(at), asm.DWord))
		return
	}
	p.readScalar(v, p.loads.Read(v) && !(p.capturing && len(v.Path) > 1), true, fail)
}

// joins has the instructions of the operators.
var joins = map[spec.Operator]asm.ALUOp{
	spec.BitOr: asm.Or, spec.BitAnd: asm.And, spec.Shl: asm.LSh, spec.Add: asm.Add, spec.Sub: asm.Sub, spec.Mul: asm.Mul,
}

// join returns the instruction of an operation, on 64 bits.
func join(o *compiler.Operation) asm.ALUOp {
	if o.Op == spec.Shr {
		return shiftRight(o.Type.Signed)
	}
	return joins[o.Op]
}

// joinRegisters computes R2 op R1 in R1. The number of bits to shift by is taken
// modulo the width.
func (p *program) joinRegisters(o *compiler.Operation) {
	if o.Op == spec.Shl || o.Op == spec.Shr {
		p.emit(asm.And.Imm(asm.R1, int32(8*o.Type.Size-1)))
	}
	p.emit(join(o).Reg(asm.R2, asm.R1), asm.Mov.Reg(asm.R1, asm.R2))
}

// byConstant computes R1 op n in R1.
func (p *program) byConstant(o *compiler.Operation, n uint64) {
	if v := int64(n); v >= math.MinInt32 && v <= math.MaxInt32 {
		p.emit(join(o).Imm(asm.R1, int32(v)))
		return
	}
	p.emit(asm.LoadImm(asm.R2, int64(n), asm.DWord), join(o).Reg(asm.R1, asm.R2))
}

// compareValues continues if two values compare as an operation says, or, with not, if
// they do not.
func (p *program) compareValues(o *compiler.Operation, not bool, to otherwise) {
	p.ptr = rOut
	p.operands(o, to.unreadable)
	p.ptr = rBase
	p.jumpCompared(o, not, to.no)
}

// jumpCompared jumps to no unless R2 compares with R1 as the operation says, or, with
// not, if it does.
func (p *program) jumpCompared(o *compiler.Operation, not bool, no string) {
	p.converted(asm.R2, o.X, o)
	p.converted(asm.R1, o.Y, o)
	if o.Compare == spec.Mask {
		zero := asm.JEq
		if not {
			zero = asm.JNE
		}
		p.emit(asm.And.Reg(asm.R2, asm.R1), zero.Imm(asm.R2, 0, no))
		return
	}
	op := o.Compare
	if !not {
		op = compiler.Opposites[op]
	}
	p.emit(jumps[o.Type.Signed][op].Reg(asm.R2, asm.R1, no))
}

// converted converts a number to the type of its operation. Only the conversion of a
// negative number to an unsigned type changes any of the 64 bits.
func (p *program) converted(reg asm.Register, v *compiler.Value, o *compiler.Operation) {
	if v.Scalar.Signed && !o.Type.Signed {
		p.extend(reg, &o.Type)
	}
}

// keepOperands stores the values of the entry that values at return are computed
// from, in the memory of the call at rOut, after a word with a bit for each of them
// that could not be read. A value that is also one of the items is taken from its
// slot.
func (p *program) keepOperands(s *stash, items []*compiler.Value) {
	operands := p.probe.Operands
	if s.operands == 0 {
		return
	}
	p.capturing = true // the return may show them
	defer func() { p.capturing = false }()
	p.step("values to compute others of")
	p.emit(asm.Mov.Imm(asm.R1, 0), asm.StoreMem(rOut, int16(s.operands), asm.R1, asm.DWord))
	for i, v := range operands {
		at := int16(s.operands + 8 + 8*i)
		kept, unreadable := p.fresh("kept"), p.prefix+p.fresh("unkept")
		p.step("%s", v.Name)
		if item := slices.Index(items, v); item >= 0 {
			l := &p.event.Layout
			p.emit(
				asm.LoadMem(asm.R1, rOut, p.out(l.Faults+item), asm.Byte),
				asm.LoadMem(rBase, rOut, p.out(l.Slots[item].Off), asm.DWord),
				asm.JEq.Imm(asm.R1, int32(compiler.ValueFault), unreadable),
				asm.StoreMem(rOut, at, rBase, asm.DWord),
			)
		} else {
			p.operand(v, unreadable)
			p.emit(asm.StoreMem(rOut, at, asm.R1, asm.DWord))
		}
		if p.refers(unreadable) {
			p.later(unreadable, func() {
				p.emit(
					asm.StoreMem(rOut, at, rBase, asm.DWord),
					asm.LoadMem(asm.R1, rOut, int16(s.operands), asm.DWord),
					asm.LoadImm(asm.R2, 1<<i, asm.DWord),
					asm.Or.Reg(asm.R1, asm.R2),
					asm.StoreMem(rOut, int16(s.operands), asm.R1, asm.DWord),
					asm.Ja.Label(kept),
				)
			})
			p.label(kept)
		}
	}
}

// keptOperand loads a number that was kept at entry into R1. If it could not be
// read then, it goes to fail with the address that could not be read.
func (p *program) keptOperand(i int, fail string) {
	p.emit(
		asm.LoadMem(p.ptr, rStash, int16(p.stash.operands+8+8*i), asm.DWord),
		asm.LoadMem(asm.R1, rStash, int16(p.stash.operands), asm.DWord),
	)
	p.bits(1 << i)
	p.emit(asm.JNE.Imm(asm.R1, 0, fail), asm.Mov.Reg(asm.R1, p.ptr))
}
