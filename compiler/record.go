package compiler

import "github.com/cilium/ebpf/asm"

// reserve takes room for the record in the ring buffer. Everything that can
// reject the call must have been tested before.
func (p *program) reserve() {
	p.step("reserve %d bytes", p.event.Layout.Size)
	p.emit(
		mapPtr(asm.R1, EventsMap),
		asm.Mov.Imm(asm.R2, int32(p.event.Layout.Size)),
		asm.Mov.Imm(asm.R3, 0),
		asm.FnRingbufReserve.Call(),
		asm.JEq.Imm(asm.R0, 0, labelLost),
		asm.Mov.Reg(rOut, asm.R0),
	)
}

func (p *program) header() {
	p.step("header")
	p.emit(
		asm.StoreImm(rOut, HeaderEvent, int64(p.number), asm.Word),
		asm.FnGetSmpProcessorId.Call(),
		asm.StoreMem(rOut, HeaderCPU, asm.R0, asm.Word),
		asm.LoadMem(asm.R1, asm.RFP, spPIDTID, asm.DWord),
		asm.StoreMem(rOut, HeaderPIDTID, asm.R1, asm.DWord),
		asm.FnKtimeGetNs.Call(),
		asm.StoreMem(rOut, HeaderTime, asm.R0, asm.DWord),
	)
	p.loadFrame(asm.R1)
	p.emit(asm.StoreMem(rOut, HeaderCall, asm.R1, asm.DWord))
	p.move(asm.R1, rOut, HeaderComm)
	p.emit(asm.Mov.Imm(asm.R2, 16), asm.FnGetCurrentComm.Call())
}

// clearFaults marks all items as good: ring-buffer memory holds old records.
func (p *program) clearFaults() {
	n := align8(len(p.event.Items))
	if n == 0 {
		return
	}
	p.step("no faults")
	p.emit(asm.Mov.Imm(asm.R1, 0))
	for i := 0; i < n; i += 8 {
		p.emit(asm.StoreMem(rOut, int16(p.event.Layout.Faults+i), asm.R1, asm.DWord))
	}
}

// submit hands the record over and ends the program.
func (p *program) submit() {
	p.step("submit")
	p.emit(
		asm.Mov.Reg(asm.R1, rOut),
		asm.Mov.Imm(asm.R2, 0),
		asm.FnRingbufSubmit.Call(),
		asm.Ja.Label(p.reject()),
	)
	p.label(labelLost)
	p.count(counterLost)
	if p.stash != nil {
		p.drop()
	}
	p.exit()
}

// count adds one to a counter of the event.
func (p *program) count(counter int) {
	p.step("count what is lost")
	p.emit(
		asm.StoreImm(asm.RFP, spKey, int64(p.number), asm.Word),
		mapPtr(asm.R1, CountersMap),
	)
	p.move(asm.R2, asm.RFP, spKey)
	p.emit(
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, p.reject()),
		asm.Mov.Imm(asm.R1, 1),
		asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, int16(counter)),
	)
}

// exit is the one way out.
func (p *program) exit() {
	p.label(labelExit)
	p.step("done")
	p.emit(asm.Mov.Imm(asm.R0, 0), asm.Return())
}
