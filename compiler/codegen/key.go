package codegen

import (
	"slices"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
)

// keyPart stores a part of the key in room bytes of the stack. Calls with the same
// value must have the same bytes.
func (p *program) keyPart(v *compiler.Value, at, room int, unreadable, full string) {
	_, _, kept := p.keptAt(v)
	switch {
	case v.Base.Builtin == compiler.KernelStack && kept:
		p.begunStackNumber(v, at, full)
		return
	case v.Base.Builtin == compiler.KernelStack:
		p.stackNumber(asm.RFP, at, full)
		return
	case v.Scalar != nil && v.Text == compiler.NoText:
		p.number64(v, unreadable)
		p.emit(asm.StoreMem(asm.RFP, int16(at), asm.R1, asm.DWord))
		p.zeroKey(at+8, room-8) // of a glob, in which another function has a text here
		return
	}
	p.zeroKey(at, room)
	p.bytesOfKey(v, at, room, unreadable)
}

// zeroKey clears a part of the stack.
func (p *program) zeroKey(at, size int) {
	if size > 0 {
		p.emit(asm.Mov.Imm(asm.R1, 0))
	}
	for i := 0; i < size; i += 8 {
		p.emit(asm.StoreMem(asm.RFP, int16(at+i), asm.R1, asm.DWord))
	}
}

// bytesOfKey reads a part of the key that consists of bytes. Zeroes have been stored there.
func (p *program) bytesOfKey(v *compiler.Value, at, room int, unreadable string) {
	_, fault, kept := p.keptAt(v)
	size, _ := btf.Sizeof(v.Type)
	text := v.Text != compiler.NoText || v.Base.Builtin == compiler.NoBuiltin && v.IsText()
	read := size
	switch {
	case v.Text != compiler.NoText:
		read = compiler.MostKeyPart + compiler.StringSlack
	case text:
		read++
	}
	switch {
	case kept:
		p.emit(asm.LoadMem(asm.R1, rStash, fault, asm.Byte), asm.JNE.Imm(asm.R1, 0, unreadable))
		from, n := p.keptBytes(v)
		p.move(asm.R3, rStash, from)
		p.readKey(at, min(read, n), text, compiler.KernelSpace, unreadable)
		if read > n {
			p.lastOfKey(at, n, from)
		}
	case v.Base.Builtin == compiler.Comm:
		p.move(asm.R1, asm.RFP, at)
		p.emit(asm.Mov.Imm(asm.R2, compiler.CommSize), asm.FnGetCurrentComm.Call())
	case v.Text != compiler.NoText:
		p.number64(v, unreadable)
		p.emit(asm.Mov.Reg(asm.R3, asm.R1))
		p.elsewhere(v.Text.Space(), unreadable)
		p.readKey(at, read, true, v.Text.Space(), unreadable)
	case text && len(v.Path) > 0:
		p.walk(v, false, unreadable)
		last := v.Path[len(v.Path)-1]
		p.move(asm.R3, rBase, last.Off)
		p.readKey(at, read, true, last.In, unreadable)
	default:
		p.emit(asm.Mov.Reg(rOut, asm.RFP))
		p.origin = 0
		p.captureBytes(v, compiler.Slot{Off: at, Data: at, Cap: size}, unreadable)
		for i := size; i < room && i < compiler.Align8(size); i++ { // registers have more
			p.emit(asm.StoreImm(asm.RFP, int16(at+i), 0, asm.Byte))
		}
		if text {
			p.endText(at, size)
		}
	}
}

// endText clears what is after the NUL of an array of characters on the stack.
func (p *program) endText(at, size int) {
	for i := 1; i < size; i++ {
		goesOn := p.fresh("goeson")
		p.emit(
			asm.LoadMem(asm.R1, asm.RFP, int16(at+i-1), asm.Byte),
			asm.JNE.Imm(asm.R1, 0, goesOn),
			asm.StoreImm(asm.RFP, int16(at+i), 0, asm.Byte),
		)
		p.label(goesOn)
	}
}

// lastOfKey copies the last character of an array of size characters at rStash, if it
// has no NUL: a string of this size has been read, whose length with a NUL is in R0.
func (p *program) lastOfKey(at, size, from int) {
	shorter := p.fresh("shorter")
	p.emit(
		asm.JNE.Imm(asm.R0, int32(size), shorter),
		asm.LoadMem(asm.R1, rStash, int16(from+size-1), asm.Byte),
		asm.StoreMem(asm.RFP, int16(at+size-1), asm.R1, asm.Byte),
	)
	p.label(shorter)
}

// readKey reads a string, or bytes, from the address in R3 to the stack.
func (p *program) readKey(at, size int, text bool, in compiler.Space, unreadable string) {
	if !text {
		p.readTo(asm.RFP, at, size, in)
		p.emit(asm.JNE.Imm(asm.R0, 0, unreadable))
		return
	}
	p.move(asm.R1, asm.RFP, at)
	p.emit(asm.Mov.Imm(asm.R2, int32(size)))
	p.readString(in)
	p.emit(asm.JSLE.Imm(asm.R0, 0, unreadable))
	if size < compiler.MostKeyPart+compiler.StringSlack {
		return
	}
	whole := p.fresh("whole")
	p.emit(
		asm.JNE.Imm(asm.R0, int32(size), whole),
		asm.StoreImm(asm.RFP, int16(at+compiler.MostKeyPart), 1, asm.Byte), // the same for all that are longer
	)
	p.label(whole)
}

// keptBytes returns the offset from rStash of the bytes of a value, and their number.
func (p *program) keptBytes(v *compiler.Value) (at, n int) {
	origin, _ := p.keptFrom()
	slot := p.event.Layout.Slots[slices.Index(p.event.Items, v)]
	return slot.Data - origin, slot.Cap
}

// stackNumber stores at an offset from a register the number of the stack, and the
// caller where the stack lacks it. If another stack has its place, it goes to full.
func (p *program) stackNumber(to asm.Register, at int, full string) {
	skip := int32(0)
	if p.kind.Trampoline() {
		skip = p.opts.Arch.ProgramFrames
	}
	p.emit(
		asm.Mov.Reg(asm.R1, rContext), mapPtr(asm.R2, stacksOf(p.table)), asm.Mov.Imm(asm.R3, skip), asm.FnGetStackid.Call(),
		asm.JSLT.Imm32(asm.R0, 0, full),
		asm.StoreMem(to, int16(at), asm.R0, asm.DWord),
		asm.Mov.Imm(asm.R1, 0),
	)
	if !p.kind.Trampoline() && p.lacksCaller() {
		p.emit(asm.LoadMem(asm.R1, rContext, p.opts.Arch.RetAddr.Reg, asm.DWord))
	}
	p.emit(asm.StoreMem(to, int16(at+8), asm.R1, asm.DWord))
}
