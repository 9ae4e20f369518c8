package codegen

import (
	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// rSample is the register that holds the sampled value across helper calls.
const rSample = rBase

// sample adds the measured value, or the duration of the call, to the sum and
// to the histogram.
func (p *program) sample(done string) {
	if p.probe.Measure == compiler.Durations {
		p.step("how long the call took")
		p.readBuiltin(compiler.Duration)
	} else {
		p.step("%s", p.probe.Measured.Name)
		p.number64(p.probe.Measured, p.countedIn(compiler.ValuesMap, "faulted", compiler.SamplesFaulted, done))
	}
	p.emit(asm.Mov.Reg(rSample, asm.R1))
	p.step("add it to the sum")
	p.elementAt(compiler.ValuesMap, done)
	p.addToSum(p.probe.Signed())
	p.step("the least and the greatest value")
	p.extremes(compiler.SamplesExtremes, p.probe.Signed())
	p.step("add it to the histogram")
	p.addToHistogram(p.probe.Signed(), compiler.StepBits, compiler.HistogramSize, done)
	p.add(compiler.SamplesSize)
}

// addToSum adds the two halves of the value separately, so that no sum
// overflows. The lower half of a signed value has a sign, too: to add a small negative
// number changes one of the sums alone, as others may read them at any moment.
func (p *program) addToSum(signed bool) {
	p.emit(asm.Mov.Reg32(asm.R1, rSample))
	if signed {
		p.emit(asm.LSh.Imm(asm.R1, 32), asm.ArSh.Imm(asm.R1, 32))
	}
	p.emit(
		asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, compiler.SamplesLow),
		asm.Mov.Reg(asm.R1, rSample),
	)
	if signed { // the upper half is one more if the lower one is negative
		p.emit(asm.ArSh.Imm(asm.R1, 31), asm.Add.Imm(asm.R1, 1), asm.ArSh.Imm(asm.R1, 1))
	} else {
		p.emit(asm.RSh.Imm(asm.R1, 32))
	}
	p.emit(asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, compiler.SamplesHigh))
}

// extremes updates the greatest and the least value, which are at an offset from R0.
// Kernels before 5.12 have no atomic operation for that. So a program marks the
// extremes that it is about to change, and a program that interrupts it uses the next
// of several.
// That program runs in an interrupt and ends before the other continues: tasks
// are not preempted inside kprobes and tracepoints, and where they can be
// inside others (fentry from 5.12 on), a program that already runs on the CPU
// is skipped and counted as missed. So only one program at a time changes each
// of the extremes.
func (p *program) extremes(at int, signed bool) {
	end := p.fresh("extremes")
	p.emit(asm.Mov.Reg(asm.R2, rSample))
	if signed {
		p.emit(asm.LoadImm(asm.R1, -1<<63, asm.DWord), asm.Xor.Reg(asm.R2, asm.R1))
	}
	p.emit(asm.Mov.Reg(asm.R3, asm.R2), asm.Xor.Imm(asm.R3, -1))
	inUse := p.fresh("nested")
	p.extremesAt(at, inUse)
	p.label(end)
	p.later(inUse, func() {
		for i := 1; i < compiler.Nesting; i++ {
			next := end
			if i < compiler.Nesting-1 {
				next = p.fresh("nested")
			}
			p.step("a program on this CPU was interrupted here")
			p.extremesAt(at+i*compiler.ExtremesSize, next)
			p.emit(asm.Ja.Label(end))
			if next != end {
				p.label(next)
			}
		}
	})
}

// extremesAt updates the extremes at an offset from R0, unless they are in use. R2 has
// the value, R3 its complement.
func (p *program) extremesAt(at int, inUse string) {
	less, more := p.fresh("less"), p.prefix+p.fresh("more")
	busy, most, notLeast := int16(at+compiler.ExtremesBusy), int16(at+compiler.ExtremesMost), int16(at+compiler.ExtremesNotLeast)
	p.emit(
		asm.LoadMem(asm.R1, asm.R0, busy, asm.DWord),
		asm.JNE.Imm(asm.R1, 0, inUse),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreMem(asm.R0, busy, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.R0, most, asm.DWord),
		asm.JGE.Reg(asm.R1, asm.R2, less),
		asm.StoreMem(asm.R0, most, asm.R2, asm.DWord),
	)
	p.label(less)
	p.emit(
		asm.LoadMem(asm.R1, asm.R0, notLeast, asm.DWord),
		asm.JGE.Reg(asm.R1, asm.R3, more),
		asm.StoreMem(asm.R0, notLeast, asm.R3, asm.DWord),
	)
	p.label(more)
	p.emit(asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.R0, busy, asm.R1, asm.DWord))
}

// addToHistogram moves R0 from the first bucket of a histogram to that of the value:
// the one that [compiler.Bucket] returns, with stepBits in place of
// [compiler.StepBits]. Negative values have buckets of their own, which begin
// negative bytes later.
func (p *program) addToHistogram(signed bool, stepBits int32, negative int, done string) {
	p.emit(asm.Mov.Reg(asm.R1, rSample))
	if signed {
		positive := p.fresh("positive")
		p.emit(
			asm.JSGE.Imm(asm.R1, 0, positive),
			asm.Mov.Imm(asm.R1, 0),
			asm.Sub.Reg(asm.R1, rSample),
			asm.Add.Imm(asm.R0, int32(negative)),
		)
		p.label(positive)
	}
	p.emit(asm.Mov.Imm(asm.R2, 0)) // by how many bits the value is shifted right
	for by := int32(32); by > 0; by /= 2 {
		small := p.fresh("small")
		p.emit(
			asm.Mov.Reg(asm.R3, asm.R1),
			asm.RSh.Imm(asm.R3, by+stepBits),
			asm.JEq.Imm(asm.R3, 0, small),
			asm.RSh.Imm(asm.R1, by),
			asm.Add.Imm(asm.R2, by),
		)
		p.label(small)
	}
	if stepBits > 0 {
		p.emit(asm.LSh.Imm(asm.R2, stepBits))
	}
	p.emit(
		asm.Add.Reg(asm.R1, asm.R2),
		asm.JGT.Imm(asm.R1, (64-stepBits+1)<<stepBits-1, done), // for the verifier
		asm.LSh.Imm(asm.R1, 3),
		asm.Add.Reg(asm.R0, asm.R1),
	)
}

// compare reads the item again, through the argument as it was at entry, and
// counts whether it is unchanged.
func (p *program) compare(done string) {
	v := p.probe.Measured
	faulted := p.countedIn(compiler.ChangesMap, "faulted", compiler.ChangesFaulted, done)
	changed := p.countedIn(compiler.ChangesMap, "changed", compiler.ChangesChanged, done)
	p.step("could it be read at entry?")
	p.wasRead(v, faulted)
	if v.Base.Param != nil {
		base := p.event.Kept()[len(p.event.Kept())-1]
		p.wasRead(base, faulted)
		at, _, _ := p.keptAt(base)
		p.again = int(at)
	}
	p.step("%s at return", v.Name)
	at, _, _ := p.keptAt(v)
	if v.Scalar != nil {
		p.readScalar(v, false, false, faulted)
		p.emit(asm.LoadMem(asm.R2, rStash, at, asm.DWord), asm.JNE.Reg(asm.R1, asm.R2, changed))
	} else {
		p.compareBytes(v, faulted, changed)
	}
	p.again = 0
	p.step("count it as unchanged")
	p.elementAt(compiler.ChangesMap, done)
	p.add(compiler.ChangesUnchanged)
}

// wasRead continues if a value could be read at entry.
func (p *program) wasRead(v *compiler.Value, unreadable string) {
	_, fault, _ := p.keptAt(v)
	p.emit(asm.LoadMem(asm.R1, rStash, fault, asm.Byte), asm.JNE.Imm(asm.R1, 0, unreadable))
}

// compareBytes reads a structure or an array into the stash, after the bytes of
// the entry.
func (p *program) compareBytes(v *compiler.Value, unreadable, changed string) {
	slot := p.event.Layout.Slots[0]
	p.readArray(v, 0, rStash, p.stash.again, slot.Cap, unreadable)
	p.step("is it the same?")
	p.differ(slot.Data-p.stash.origin, p.stash.again, slot.Cap, changed)
}
