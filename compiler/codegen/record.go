package codegen

import (
	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// write writes the record of the event: reserve, fill, submit. Everything that
// can reject the call must have been tested before.
func (p *program) write(items []*compiler.Value) {
	p.limit(func() {
		p.record(items, func() {
			p.header()
			p.fill()
		})
	})
}

// reserve allocates a record in the ring buffer, in R0.
func (p *program) reserve(size int, full string) {
	p.step("reserve %d bytes", size)
	if p.probe.Watch != nil {
		p.reserveAgain(size, full)
		return
	}
	p.emit(
		mapPtr(asm.R1, compiler.EventsMap),
		asm.Mov.Imm(asm.R2, int32(size)),
		asm.Mov.Imm(asm.R3, 0),
		asm.FnRingbufReserve.Call(),
		asm.JEq.Imm(asm.R0, 0, full),
	)
}

func (p *program) header() {
	p.step("header")
	if p.numbered() {
		p.loadNumber()
		p.emit(asm.StoreMem(rOut, p.out(compiler.HeaderEvent), asm.R0, asm.Word))
	} else {
		p.emit(asm.StoreImm(rOut, p.out(compiler.HeaderEvent), int64(p.number), asm.Word))
	}
	p.cpu()
	p.emit(
		asm.StoreMem(rOut, p.out(compiler.HeaderCPU), asm.R0, asm.Word),
		asm.LoadMem(asm.R1, asm.RFP, spPIDTID, asm.DWord),
		asm.StoreMem(rOut, p.out(compiler.HeaderPIDTID), asm.R1, asm.DWord),
	)
	p.clock(asm.R0)
	p.emit(asm.StoreMem(rOut, p.out(compiler.HeaderTime), asm.R0, asm.DWord))
	p.loadFrame(asm.R1)
	p.emit(asm.StoreMem(rOut, p.out(compiler.HeaderCall), asm.R1, asm.DWord))
	p.comm(rOut, compiler.HeaderComm-p.origin)
}

// fill copies the values kept at entry. If the faults are not among what was kept,
// it clears those of all items, since ring-buffer memory holds old records.
func (p *program) fill() {
	if p.stash == nil || p.stash.origin+p.stash.run <= p.event.Layout.Faults {
		p.clearFaults()
	}
	if p.stash != nil {
		p.copyStash(p.stash)
	}
}

func (p *program) clearFaults() {
	n := compiler.Align8(len(p.event.Items))
	if n == 0 {
		return
	}
	p.step("no faults")
	p.emit(asm.Mov.Imm(asm.R1, 0))
	for i := 0; i < n; i += 8 {
		p.emit(asm.StoreMem(rOut, p.out(p.event.Layout.Faults+i), asm.R1, asm.DWord))
	}
}

// submit submits the record.
func (p *program) submit() {
	p.step("submit")
	p.emit(
		asm.Mov.Reg(asm.R1, rOut),
		asm.Mov.Imm(asm.R2, 0),
		asm.FnRingbufSubmit.Call(),
	)
}

// comm stores the name of the thread, NUL-terminated, at an offset from a
// register. The loads take a tenth of the time of bpf_get_current_comm. That
// helper fills the bytes after the NUL with zeros; here they may be from an
// earlier name. A name that is being changed may be half old and half new, as
// in the kernel's own readers, but ends in a NUL.
func (p *program) comm(to asm.Register, off int) {
	if p.probe.Comm == 0 {
		p.move(asm.R1, to, off)
		p.emit(asm.Mov.Imm(asm.R2, compiler.CommSize), asm.FnGetCurrentComm.Call())
		return
	}
	p.emit(asm.FnGetCurrentTaskBtf.Call())
	for i := 0; i < compiler.CommSize; i += 8 {
		p.emit(load(asm.R1, asm.R0, p.probe.Comm+i, 8), asm.StoreMem(to, int16(off+i), asm.R1, asm.DWord))
	}
}
