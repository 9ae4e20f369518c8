package compiler

import "github.com/cilium/ebpf/asm"

// rSample is the register with the value that is counted, across calls.
const rSample = rBase

// sample adds the value that is measured, or how long the call took, to the sum
// and to the histogram.
func (p *program) sample(done string) {
	if p.probe.Measure == Durations {
		p.step("how long the call took")
		p.readBuiltin(Duration)
	} else {
		p.step("%s", p.probe.Measured.Name)
		p.number64(p.probe.Measured, p.countedIn(ValuesMap, "unread", samplesUnread, done))
	}
	p.emit(asm.Mov.Reg(rSample, asm.R1))
	p.step("add it to the sum")
	p.elementAt(ValuesMap, done)
	p.addToSum()
	p.step("the least and the greatest value")
	p.extremes()
	p.step("add it to the histogram")
	p.addToHistogram(done)
}

// addToSum adds both halves of the value, so that no sum overflows.
func (p *program) addToSum() {
	p.emit(
		asm.Mov.Reg32(asm.R1, rSample),
		asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, samplesLow),
		asm.Mov.Reg(asm.R1, rSample),
	)
	if p.probe.Signed() {
		p.emit(asm.ArSh.Imm(asm.R1, 32))
	} else {
		p.emit(asm.RSh.Imm(asm.R1, 32))
	}
	p.emit(asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, samplesHigh))
}

// extremes keeps the greatest and the least value. Kernels before 5.12 have no
// atomic operation for that, so a program marks what it is about to change, and
// one that comes between takes the next of several. Such a one comes in an
// interrupt and ends before the other goes on: tasks are not preempted inside
// kprobes and tracepoints, and where they can be in others (an fentry of
// 5.12 on) a program that runs already on the CPU is skipped, which is counted
// as a miss. So each extreme is changed by one program at a time.
func (p *program) extremes() {
	end := p.prefix + p.fresh("extremes")
	p.emit(asm.Mov.Reg(asm.R2, rSample))
	if p.probe.Signed() {
		p.emit(asm.LoadImm(asm.R1, -1<<63, asm.DWord), asm.Xor.Reg(asm.R2, asm.R1))
	}
	p.emit(asm.Mov.Reg(asm.R3, asm.R2), asm.Xor.Imm(asm.R3, -1))
	inUse := p.prefix + p.fresh("nested")
	p.extremesAt(samplesExtremes, inUse)
	p.label(end)
	p.later(inUse, func() {
		for i := 1; i < nesting; i++ {
			next := end
			if i < nesting-1 {
				next = p.prefix + p.fresh("nested")
			}
			p.step("a program on this CPU was interrupted here")
			p.extremesAt(samplesExtremes+i*extremesSize, next)
			p.emit(asm.Ja.Label(end))
			if next != end {
				p.label(next)
			}
		}
	})
}

// extremesAt changes one of the extremes at R0 unless it is in use. The value
// is in R2, its complement in R3.
func (p *program) extremesAt(at int, inUse string) {
	less, more := p.prefix+p.fresh("less"), p.prefix+p.fresh("more")
	busy, most, notLeast := int16(at+extremesBusy), int16(at+extremesMost), int16(at+extremesNotLeast)
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

// addToHistogram counts the value in the bucket that [Bucket] says. R0 points
// to the element.
func (p *program) addToHistogram(done string) {
	p.emit(asm.Mov.Reg(asm.R1, rSample))
	if p.probe.Signed() {
		positive := p.prefix + p.fresh("positive")
		p.emit(
			asm.JSGE.Imm(asm.R1, 0, positive),
			asm.Mov.Imm(asm.R1, 0),
			asm.Sub.Reg(asm.R1, rSample),
			asm.Add.Imm(asm.R0, histogramSize), // that of the negative values
		)
		p.label(positive)
	}
	p.emit(asm.Mov.Imm(asm.R2, 0)) // by how much the value is shifted right
	for by := int32(32); by > 0; by /= 2 {
		small := p.prefix + p.fresh("small")
		p.emit(
			asm.Mov.Reg(asm.R3, asm.R1),
			asm.RSh.Imm(asm.R3, by+stepBits),
			asm.JEq.Imm(asm.R3, 0, small),
			asm.RSh.Imm(asm.R1, by),
			asm.Add.Imm(asm.R2, by),
		)
		p.label(small)
	}
	p.emit(
		asm.LSh.Imm(asm.R2, stepBits),
		asm.Add.Reg(asm.R1, asm.R2),
		asm.JGT.Imm(asm.R1, HistogramBuckets-1, done), // for the verifier
		asm.LSh.Imm(asm.R1, 3),
		asm.Add.Reg(asm.R0, asm.R1),
	)
	p.add(samplesSize)
}
