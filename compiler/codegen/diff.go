package codegen

import (
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// diffRoom locates a value in the stash that is read again at return: whether it
// differs, its number or the address that could not be read, and the bytes of a
// structure or an array.
type diffRoom struct {
	state, number, bytes int // offsets in the stash
	size                 int // of the bytes
}

// The states of a value that has been read again.
const (
	diffNone       = iota // it is the same
	diffSome              // it differs
	diffUnknown           // it could not be read at entry
	diffUnreadable        // it could not be read at return
)

// placeDiffs adds room for what is read again at return. The bytes come last: a load
// reaches 32 KiB, a copy any offset.
func (s *stash) placeDiffs() {
	s.diffs = map[*compiler.Value]diffRoom{}
	for _, v := range s.event.Probe.Diffs {
		s.diffs[v] = diffRoom{state: s.size, number: s.size + 8}
		s.size += 16
	}
	for _, v := range s.event.Probe.Diffs {
		if v.Scalar == nil {
			room := s.diffs[v]
			room.bytes, room.size = s.size, s.slot(v.Before).Cap
			s.diffs[v] = room
			s.size += compiler.Align8(room.size)
		}
	}
}

// checkDiffs returns an error if loads do not reach what is read again.
func (u *generator) checkDiffs() error {
	for _, s := range u.stashes {
		bytes := 0
		for _, room := range s.diffs {
			bytes = max(bytes, room.number+8)
		}
		if bytes > compiler.MaxStore {
			return refuse(s.event.Probe.Trace, "the values of %s to compare take %d bytes, more than %d", s.event.Probe.Func.Name, bytes, compiler.MaxStore).
				WithHint("capture less of each")
		}
	}
	return nil
}

// slot returns the slot of a value that is kept.
func (s *stash) slot(v *compiler.Value) compiler.Slot {
	return s.event.Layout.Slots[slices.Index(s.event.Items, v)]
}

// readsAgain reports whether a condition needs what is read again at return. Such
// conditions cost the most.
func readsAgain(c compiler.Cond) bool {
	for l := range compiler.Leaves(c) {
		if l.Value.Before != nil {
			return true
		}
	}
	return false
}

// readAgain reads the values that are compared with what they were at entry, through
// the arguments of the entry, and compares them. What is tested and shown of them is
// what has been read here.
func (p *program) readAgain() {
	for _, v := range p.probe.Diffs {
		room, old := p.stash.diffs[v], p.stash.slot(v.Before)
		known, unreadable, differs, compared := p.fresh("known"), p.prefix+p.fresh("unreadable"), p.prefix+p.fresh("differs"), p.prefix+p.fresh("compared")
		p.step("%s at return", v.Before.Name)
		if v.Scalar != nil {
			p.readScalar(v, false, false, unreadable)
			p.emit(asm.StoreMem(rStash, int16(room.number), asm.R1, asm.DWord))
		} else {
			p.readArray(v, 0, rStash, room.bytes, room.size, unreadable)
		}
		p.step("could it be read at entry?")
		_, fault, _ := p.keptAt(v.Before)
		p.emit(asm.LoadMem(asm.R1, rStash, fault, asm.Byte), asm.JEq.Imm(asm.R1, 0, known))
		p.emit(asm.Mov.Imm(asm.R1, diffUnknown), asm.Ja.Label(compared))
		p.label(known)
		p.step("is it the same?")
		if v.Scalar != nil {
			p.emit(
				asm.LoadMem(asm.R1, rStash, int16(room.number), asm.DWord),
				asm.LoadMem(asm.R2, rStash, int16(old.Off-p.stash.origin), asm.DWord),
				asm.JNE.Reg(asm.R1, asm.R2, differs),
			)
		} else {
			p.differ(old.Data-p.stash.origin, room.bytes, room.size, differs)
		}
		p.emit(asm.Mov.Imm(asm.R1, diffNone))
		p.label(compared)
		p.emit(asm.StoreMem(rStash, int16(room.state), asm.R1, asm.DWord))
		p.later(differs, func() { p.emit(asm.Mov.Imm(asm.R1, diffSome), asm.Ja.Label(compared)) })
		p.later(unreadable, func() {
			p.emit(asm.StoreMem(rStash, int16(room.number), rBase, asm.DWord), asm.Mov.Imm(asm.R1, diffUnreadable), asm.Ja.Label(compared))
		})
	}
}

// unrolled is the largest size in bytes that is compared without a loop.
const unrolled = 256

// differ jumps to changed if the bytes at two offsets in the stash differ. What
// follows them in their last word does not count.
func (p *program) differ(a, b, size int, changed string) {
	words := size / 8
	tail := int16(8 * words)
	p.move(asm.R1, rStash, a)
	p.move(asm.R2, rStash, b)
	if size <= unrolled {
		for i := range words {
			p.emit(
				asm.LoadMem(asm.R3, asm.R1, int16(8*i), asm.DWord),
				asm.LoadMem(asm.R4, asm.R2, int16(8*i), asm.DWord),
				asm.JNE.Reg(asm.R3, asm.R4, changed),
			)
		}
	} else {
		loop := p.fresh("words")
		p.emit(asm.Mov.Imm(asm.R0, 0), asm.Mov.Imm(asm.R5, int32(words)))
		p.label(loop)
		p.emit(
			asm.LoadMem(asm.R3, asm.R1, 0, asm.DWord),
			asm.LoadMem(asm.R4, asm.R2, 0, asm.DWord),
			asm.Xor.Reg(asm.R3, asm.R4),
			asm.Or.Reg(asm.R0, asm.R3),
			asm.Add.Imm(asm.R1, 8),
			asm.Add.Imm(asm.R2, 8),
			asm.Sub.Imm(asm.R5, 1),
			asm.JNE.Imm(asm.R5, 0, loop),
			asm.JNE.Imm(asm.R0, 0, changed),
		)
		tail = 0
	}
	if rest := size % 8; rest > 0 {
		p.emit(
			asm.LoadMem(asm.R3, asm.R1, tail, asm.DWord),
			asm.LoadMem(asm.R4, asm.R2, tail, asm.DWord),
			asm.Xor.Reg(asm.R3, asm.R4),
			asm.LSh.Imm(asm.R3, int32(64-8*rest)),
			asm.JNE.Imm(asm.R3, 0, changed),
		)
	}
}

// diffLeaf continues if a value differs from what it was at entry, or, with the
// operator spec.Eq, if it does not.
func (p *program) diffLeaf(l *compiler.Leaf, to otherwise) {
	jump := asm.JEq
	if l.Pred.Op == spec.Eq {
		jump = asm.JNE
	}
	p.emit(
		asm.LoadMem(asm.R1, rStash, int16(p.stash.diffs[l.Value].state), asm.DWord),
		asm.JGT.Imm(asm.R1, diffSome, to.unreadable),
		jump.Imm(asm.R1, diffNone, to.no),
	)
}

// captureDiff stores what has been read again.
func (p *program) captureDiff(v *compiler.Value, slot compiler.Slot, fault string) {
	room := p.stash.diffs[v]
	p.emit(
		asm.LoadMem(rBase, rStash, int16(room.number), asm.DWord),
		asm.LoadMem(asm.R1, rStash, int16(room.state), asm.DWord),
		asm.JEq.Imm(asm.R1, diffUnreadable, fault),
	)
	if v.Scalar != nil {
		p.emit(asm.StoreMem(rOut, p.out(slot.Off), rBase, asm.DWord))
		return
	}
	p.copyKept(slot.Data, rStash, room.bytes, room.size)
}
