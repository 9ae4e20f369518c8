package compiler

import "github.com/cilium/ebpf/asm"

// write makes the record of the event: reserve, fill, submit. Everything that
// can reject the call must have been tested before.
func (p *program) write(items []*Value) {
	written := p.prefix + p.fresh("written")
	p.reserve(p.event.Layout.Size, p.counted("lost", counterLost, written))
	p.header()
	p.fill()
	p.capture(items)
	p.submit()
	p.label(written)
}

// reserve takes room for a record in the ring buffer.
func (p *program) reserve(size int, lost string) {
	p.countMatched()
	p.step("reserve %d bytes", size)
	p.emit(
		mapPtr(asm.R1, EventsMap),
		asm.Mov.Imm(asm.R2, int32(size)),
		asm.Mov.Imm(asm.R3, 0),
		asm.FnRingbufReserve.Call(),
		asm.JEq.Imm(asm.R0, 0, lost),
		asm.Mov.Reg(rOut, asm.R0),
	)
	p.origin = 0
}

func (p *program) header() {
	p.step("header")
	if p.kind.Multi() && !p.fixed {
		p.loadNumber()
		p.emit(asm.StoreMem(rOut, p.out(HeaderEvent), asm.R0, asm.Word))
	} else {
		p.emit(asm.StoreImm(rOut, p.out(HeaderEvent), int64(p.number), asm.Word))
	}
	p.emit(
		asm.FnGetSmpProcessorId.Call(),
		asm.StoreMem(rOut, p.out(HeaderCPU), asm.R0, asm.Word),
		asm.LoadMem(asm.R1, asm.RFP, spPIDTID, asm.DWord),
		asm.StoreMem(rOut, p.out(HeaderPIDTID), asm.R1, asm.DWord),
		asm.FnKtimeGetNs.Call(),
		asm.StoreMem(rOut, p.out(HeaderTime), asm.R0, asm.DWord),
	)
	p.loadFrame(asm.R1)
	p.emit(asm.StoreMem(rOut, p.out(HeaderCall), asm.R1, asm.DWord))
	p.comm(rOut, HeaderComm-p.origin)
}

// fill marks all items as good, since ring-buffer memory holds old records, and
// copies what was kept at entry.
func (p *program) fill() {
	if p.stash == nil || p.stash.origin+p.stash.size <= p.event.Layout.Faults {
		p.clearFaults()
	}
	if p.stash != nil {
		p.copyStash(p.stash)
	}
}

func (p *program) clearFaults() {
	n := align8(len(p.event.Items))
	if n == 0 {
		return
	}
	p.step("no faults")
	p.emit(asm.Mov.Imm(asm.R1, 0))
	for i := 0; i < n; i += 8 {
		p.emit(asm.StoreMem(rOut, p.out(p.event.Layout.Faults+i), asm.R1, asm.DWord))
	}
}

// submit hands the record over.
func (p *program) submit() {
	p.step("submit")
	p.emit(
		asm.Mov.Reg(asm.R1, rOut),
		asm.Mov.Imm(asm.R2, 0),
		asm.FnRingbufSubmit.Call(),
	)
}
