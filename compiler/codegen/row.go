package codegen

import (
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// seqNumber is the offset in struct bpf_iter_meta of the number of the object
// (include/linux/bpf.h). At 0 is the file to write to.
const seqNumber = 16

// addIterator creates the event of an iterator and returns a function that generates
// its program. The program runs in the thread that reads the iterator, so it does not
// ask which processes are traced.
func (u *generator) addIterator(i int, p *compiler.Probe, opts options) func() {
	ev := u.event(p, compiler.RowEvent, p.Entry, extras{}, opts)
	opts = opts.ofAllProcesses()
	side := func(c *code) { u.newProgram(c, p, compiler.AtEntry, compiler.Iter, ev, opts).object() }
	return func() { u.sides(i, p, opts, side, nil) }
}

// addRowMap adds the memory in which rows are put together. One program at a time
// uses it: each runs while its iterator is read.
func (u *generator) addRowMap() {
	size := 0
	for _, ev := range u.Events {
		if ev.Kind == compiler.RowEvent {
			size = max(size, compiler.RowStart+ev.Layout.Size)
		}
	}
	if size > 0 {
		u.addMap(compiler.RowMap, ebpf.Array, 4, size, 1)
	}
}

// rowWord points a register to an offset in the memory of rows.
func rowWord(reg asm.Register, off uint32) asm.Instruction {
	return asm.LoadMapValue(reg, 0, off).WithReference(compiler.RowMap)
}

// object generates the program of an iterator, which writes a row for an object, or
// counts it in a table.
func (p *program) object() {
	p.begin()
	p.present()
	p.conds(p.order)
	p.admit()
	p.report(p.writeRow)
	p.end()
}

// present leaves if there is no object: after the last one, the program is called
// once more.
func (p *program) present() {
	fn := p.probe.Func
	for i := range fn.Params[1:] {
		param := &fn.Params[i+1]
		if !param.Pointer || len(param.Words) == 0 {
			continue
		}
		p.step("there is an object")
		p.wordNumber(asm.R1, compiler.Base{Param: param}, p.exitLabel())
		p.emit(asm.JEq.Imm(asm.R1, 0, p.exitLabel()))
		break
	}
	if !fn.LastAgain {
		return
	}
	p.step("it is not the last one again")
	p.emit(
		asm.LoadMem(asm.R1, rContext, 0, asm.DWord),
		asm.LoadMem(asm.R1, asm.R1, seqNumber, asm.DWord),
		asm.Add.Imm(asm.R1, 1),
		rowWord(asm.R2, 0),
		asm.LoadMem(asm.R3, asm.R2, 0, asm.DWord),
		asm.JEq.Reg(asm.R1, asm.R3, p.exitLabel()),
		asm.StoreMem(asm.R2, 0, asm.R1, asm.DWord),
	)
}

// writeRow puts the record together and writes it to the file that is being read. As
// in a ring buffer, it is as long as its strings need.
func (p *program) writeRow() {
	written := p.fresh("written")
	fixed, strings := p.splitStrings(p.event.Items)
	p.step("the row")
	p.emit(
		rowWord(rOut, compiler.RowStart),
		asm.StoreImm(rOut, compiler.HeaderEvent, int64(p.number), asm.Word),
		asm.FnKtimeGetNs.Call(),
		asm.StoreMem(rOut, compiler.HeaderTime, asm.R0, asm.DWord),
	)
	p.origin = 0
	p.clearFaults()
	p.capture(fixed)
	p.rowStrings(strings, p.forms(), written)
	p.label(written)
}

// rowStrings copies the strings at the end of a row whose form is the first of forms,
// and writes the row. If one of them is longer, the next form is tried.
func (p *program) rowStrings(strings []*compiler.Value, forms []int, written string) {
	p.form = form{room: forms[0]}
	if len(forms) > 1 {
		p.form.longer = p.fresh("longer")
		p.later(p.form.longer, func() {
			for _, v := range strings {
				p.markFault(slices.Index(p.event.Items, v), compiler.NoFault)
			}
			p.rowStrings(strings, forms[1:], written)
		})
	}
	p.capture(strings)
	p.form = form{}
	p.submitRow(p.event.Layout.SizeFor(forms[0]), written)
}

// submitRow writes the row with its length, and continues at written. If the kernel's
// buffer is full, the row is not counted: at the next read, the kernel calls the
// program again with the same object.
func (p *program) submitRow(size int, written string) {
	p.step("write %d bytes", size)
	length := compiler.RowStart - compiler.RowLength
	p.emit(
		asm.Mov.Imm(asm.R1, int32(size)),
		asm.StoreMem(rOut, int16(-length), asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, rContext, 0, asm.DWord),
		asm.LoadMem(asm.R1, asm.R1, 0, asm.DWord),
		asm.Mov.Reg(asm.R2, rOut),
		asm.Add.Imm(asm.R2, int32(-length)),
		asm.Mov.Imm(asm.R3, int32(length+size)),
		asm.FnSeqWrite.Call(),
	)
	again := p.fresh("again")
	if p.probe.Func.LastAgain {
		p.emit(asm.JNE.Imm(asm.R0, 0, again))
		p.later(again, func() {
			p.step("the object comes again")
			p.emit(rowWord(asm.R1, 0), asm.Mov.Imm(asm.R2, 0), asm.StoreMem(asm.R1, 0, asm.R2, asm.DWord), asm.Ja.Label(p.exitLabel()))
		})
	} else if p.opts.CountCalls {
		p.emit(asm.JNE.Imm(asm.R0, 0, p.exitLabel()))
	}
	if p.opts.CountCalls {
		p.count(compiler.CounterMatched, written)
		return
	}
	p.emit(asm.Ja.Label(written))
}
