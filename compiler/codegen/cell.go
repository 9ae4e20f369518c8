package codegen

import (
	"math"
	"math/bits"

	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// cell adds a call to an aggregate. The row is at rOut, the value on the stack.
func (p *program) cell(a *compiler.Aggregate, at int, done string) {
	p.emit(asm.LoadMem(rSample, asm.RFP, int16(p.values[a.Value]), asm.DWord))
	switch a.Kind {
	case compiler.Sum, compiler.Avg:
		p.move(asm.R0, rOut, at)
		p.addToSum(a.Signed())
	case compiler.Min, compiler.Max:
		if p.table.Slots > 0 {
			p.extremeOfCPU(a, at)
		} else {
			p.extreme(a, at)
		}
	case compiler.Hist:
		p.move(asm.R0, rOut, at)
		p.addToHistogram(a.Signed(), 0, 8*64, done)
		p.add(0)
	case compiler.Linear:
		p.linear(a)
		p.emit(asm.JGT.Imm(asm.R1, int32(a.Buckets()-1), done)) // for the verifier
		p.move(asm.R0, rOut, at)
		p.emit(asm.LSh.Imm(asm.R1, 3), asm.Add.Reg(asm.R0, asm.R1))
		p.add(0)
	}
}

// linear loads the number of the value's bucket into R1.
func (p *program) linear(a *compiler.Aggregate) {
	bucket := p.fresh("bucket")
	ordered := jumps[a.Signed()]
	p.emit(asm.Mov.Imm(asm.R1, 0))
	p.jump(ordered[spec.Lt], rSample, a.Low, bucket)
	p.emit(asm.Mov.Imm(asm.R1, int32(a.Steps())+1))
	p.jump(ordered[spec.Ge], rSample, a.High, bucket)
	p.emit(
		asm.LoadImm(asm.R2, int64(a.Low), asm.DWord),
		asm.Mov.Reg(asm.R1, rSample),
		asm.Sub.Reg(asm.R1, asm.R2),
	)
	switch {
	case a.Step&(a.Step-1) == 0:
		p.emit(asm.RSh.Imm(asm.R1, int32(bits.TrailingZeros64(a.Step))))
	case a.Step <= math.MaxInt32:
		p.emit(asm.Div.Imm(asm.R1, int32(a.Step)))
	default:
		p.emit(asm.LoadImm(asm.R2, int64(a.Step), asm.DWord), asm.Div.Reg(asm.R1, asm.R2))
	}
	p.emit(asm.Add.Imm(asm.R1, 1))
	p.label(bucket)
}

// mostRaces bounds the attempts to raise an extreme. Each that fails means that
// another CPU has raised it meanwhile.
const mostRaces = 128

// extreme raises the greatest value, or the complement of the least, see
// [compiler.Extremes], by compare and exchange.
func (p *program) extreme(a *compiler.Aggregate, at int) {
	again, end := p.fresh("again"), p.prefix+p.fresh("extreme")
	p.orderly(a)
	p.move(asm.R4, rOut, at)
	p.emit(asm.Mov.Imm(asm.R5, 0))
	p.label(again)
	p.emit(
		asm.LoadMem(asm.R0, asm.R4, 0, asm.DWord),
		asm.JGE.Reg(asm.R0, asm.R2, end),
		asm.Mov.Reg(asm.R1, asm.R0),
		compareExchange(asm.R4, asm.R2, 0),
		asm.JEq.Reg(asm.R0, asm.R1, end),
		asm.Add.Imm(asm.R5, 1),
		asm.JLT.Imm(asm.R5, mostRaces, again),
	)
	p.label(end)
}

// orderly loads into R2 a number whose order without a sign is that of the values, or
// for a minimum its complement.
func (p *program) orderly(a *compiler.Aggregate) {
	p.emit(asm.Mov.Reg(asm.R2, rSample))
	if a.Signed() {
		p.emit(asm.LoadImm(asm.R1, math.MinInt64, asm.DWord), asm.Xor.Reg(asm.R2, asm.R1))
	}
	if a.Kind == compiler.Min {
		p.emit(asm.Xor.Imm(asm.R2, -1))
	}
}

// extremeOfCPU raises the extremes of this CPU, where the kernel has no compare and
// exchange.
func (p *program) extremeOfCPU(a *compiler.Aggregate, at int) {
	p.emit(
		asm.FnGetSmpProcessorId.Call(),
		asm.And.Imm(asm.R0, int32(p.table.Slots-1)),
		asm.Mul.Imm(asm.R0, compiler.Nesting*compiler.ExtremesSize),
	)
	p.move(asm.R1, rOut, at)
	p.emit(asm.Add.Reg(asm.R0, asm.R1))
	p.extremes(0, a.Signed())
}
