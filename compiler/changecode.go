package compiler

import "github.com/cilium/ebpf/asm"

// compare reads the item again, through the argument as it was at entry, and
// counts whether it is still the same.
func (p *program) compare(done string) {
	v := p.probe.Measured
	unread := p.countedIn(ChangesMap, "unread", changesUnread, done)
	changed := p.countedIn(ChangesMap, "changed", changesChanged, done)
	p.step("could it be read at entry?")
	p.wasRead(v, unread)
	if v.Base.Param != nil {
		base := p.event.kept()[len(p.event.kept())-1]
		p.wasRead(base, unread)
		at, _, _ := p.keptAt(base)
		p.again = int(at)
	}
	p.step("%s at return", v.Name)
	at, _, _ := p.keptAt(v)
	if v.Scalar != nil {
		p.readScalar(v, false, false, unread)
		p.emit(asm.LoadMem(asm.R2, rStash, at, asm.DWord), asm.JNE.Reg(asm.R1, asm.R2, changed))
	} else {
		p.compareBytes(v, unread, changed)
	}
	p.again = 0
	p.step("count it as unchanged")
	p.elementAt(ChangesMap, done)
	p.add(changesUnchanged)
}

// wasRead goes on if a value could be read at entry.
func (p *program) wasRead(v *Value, unread string) {
	_, fault, _ := p.keptAt(v)
	p.emit(asm.LoadMem(asm.R1, rStash, fault, asm.Byte), asm.JNE.Imm(asm.R1, 0, unread))
}

// compareBytes reads a record or an array into what is kept of the call, behind
// the bytes of the entry.
func (p *program) compareBytes(v *Value, unread, changed string) {
	slot := p.event.Layout.Slots[0]
	p.walk(v, false, unread)
	last := v.Path[len(v.Path)-1]
	p.move(asm.R3, rBase, last.Off)
	p.move(asm.R1, rStash, p.stash.again)
	p.emit(asm.Mov.Imm(asm.R2, int32(slot.Cap)), readBytes(last.User), asm.JNE.Imm(asm.R0, 0, unread))
	p.step("is it the same?")
	for i := 0; i < slot.Cap; i += 8 {
		p.emit(
			asm.LoadMem(asm.R1, rStash, int16(slot.Data-p.stash.origin+i), asm.DWord),
			asm.LoadMem(asm.R2, rStash, int16(p.stash.again+i), asm.DWord),
			asm.JNE.Reg(asm.R1, asm.R2, changed),
		)
	}
}
