package codegen

import (
	"encoding/binary"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

const (
	// textBuffer is the size of the stack buffer that strings are read into.
	textBuffer = 264
	// textChunk is the number of bytes of a string that are read at a time for
	// a glob.
	textChunk = 256
	// textChunks is the largest number of chunks: longer strings cannot be
	// matched completely.
	textChunks = 4
)

// textLeaf continues if a string satisfies a predicate.
func (p *program) textLeaf(l *compiler.Leaf, to otherwise) {
	if p.buffer == 0 {
		p.buffer = p.room(textBuffer)
	}
	if l.Pred.Op == spec.Glob {
		p.matchGlob(l, to)
		return
	}
	other := to.no
	if l.Pred.Op == spec.Ne {
		other = p.fresh("other")
	}
	p.compareText(l.Value, l.Pred.Pattern.Text, other, to.unreadable)
	if l.Pred.Op == spec.Ne {
		p.emit(asm.Ja.Label(to.no))
		p.label(other)
	}
}

// compareText continues if a string equals text.
func (p *program) compareText(v *compiler.Value, text string, other, unreadable string) {
	want := text + "\x00"
	if v.Text != compiler.NoText {
		p.textPointer(v, unreadable)
		p.readTextAt(0, v.Text.Space(), len(want)+1)
		p.emit(asm.JSLE.Imm(asm.R0, 0, unreadable), asm.JNE.Imm(asm.R0, int32(len(want)), other))
		want = text
	} else {
		size := textSize(v)
		want = want[:min(len(want), size)]
		p.readArrayAt(v, 0, len(want), unreadable)
	}
	for i := 0; i < len(want); {
		n := 8
		for n > len(want)-i {
			n /= 2
		}
		var word [8]byte
		copy(word[:], want[i:i+n])
		p.emit(load(asm.R1, asm.RFP, p.buffer+i, n))
		p.jump(asm.JNE, asm.R1, binary.LittleEndian.Uint64(word[:]), other)
		i += n
	}
}

// textSize returns the size of an array that holds a string.
func textSize(v *compiler.Value) int {
	size, _ := btf.Sizeof(v.Type) // sizes of bound values are known
	return size
}

// textPointer loads the address of a string into rBase.
func (p *program) textPointer(v *compiler.Value, unreadable string) {
	p.readScalar(v, p.loads.Read(v), false, unreadable)
	p.emit(asm.Mov.Reg(rBase, asm.R1))
}

// readTextAt reads size bytes of the string at an offset from rBase, with a NUL
// at the end. R0 has the number of bytes including the NUL, or an error.
func (p *program) readTextAt(off int, in compiler.Space, size int) {
	p.move(asm.R1, asm.RFP, p.buffer)
	p.emit(asm.Mov.Imm(asm.R2, int32(size)))
	p.move(asm.R3, rBase, off)
	p.readString(in)
}

// readArrayAt reads size bytes of an array at an offset.
func (p *program) readArrayAt(v *compiler.Value, off, size int, unreadable string) {
	if v.Base.Builtin == compiler.Comm {
		p.comm(asm.RFP, p.buffer)
		return
	}
	if v.Base.Const != nil {
		p.move(asm.R1, asm.RFP, p.buffer)
		p.storeConst(asm.R1, v.Base.Const[off:off+size])
		return
	}
	p.readArray(v, off, asm.RFP, p.buffer, size, unreadable)
}

// rState is the register with the states of a glob, one bit each: bit i is set
// if the characters so far match the first i elements. It is free, because no
// record is filled while conditions are evaluated.
const rState = rOut

// matchGlob continues if a string matches a glob. It follows all ways of
// matching at once, so that the time does not depend on the pattern.
func (p *program) matchGlob(l *compiler.Leaf, to otherwise) {
	v, glob := l.Value, l.Pred.Pattern
	yes, no := p.fresh("match"), to.no
	if l.Pred.Not {
		yes, no = no, yes
	}
	ended := p.fresh("ended")
	if v.Text != compiler.NoText {
		p.textPointer(v, to.unreadable)
	}
	p.emit(asm.Mov.Imm(rState, 1))
	whole := p.globChunks(v, glob, ended, to.unreadable)
	accept := len(glob.Elements)
	if !whole { // the string continues: only a star at the end matches any rest
		p.emit(asm.JEq.Imm(rState, 0, no)) // no rest can make a failed match succeed
		p.testState(accept, to.unreadable)
		if glob.Stars>>accept&1 == 0 {
			p.emit(asm.Ja.Label(to.unreadable))
		} else {
			p.emit(asm.Ja.Label(yes))
		}
	}
	p.label(ended)
	p.testState(accept, no)
	if l.Pred.Not {
		p.emit(asm.Ja.Label(yes))
		p.label(no)
		return
	}
	if p.refers(yes) {
		p.label(yes)
	}
}

// testState continues if the glob's state has a bit, and otherwise jumps to no.
func (p *program) testState(bit int, no string) {
	p.emit(
		asm.Mov.Reg(asm.R1, rState),
		asm.RSh.Imm(asm.R1, int32(bit)),
		asm.And.Imm(asm.R1, 1),
		asm.JEq.Imm(asm.R1, 0, no),
	)
}

// globChunks matches a string chunk by chunk and jumps to ended where it ends.
// It reports whether the string always ends within the chunks.
func (p *program) globChunks(v *compiler.Value, glob *compiler.Pattern, ended, unreadable string) (whole bool) {
	if v.Text != compiler.NoText {
		size := textChunk
		for i := range textChunks {
			if i == textChunks-1 {
				size++ // for the NUL of a string that ends with this chunk
			}
			p.readTextAt(i*(textChunk-1), v.Text.Space(), size)
			p.emit(asm.JSLE.Imm(asm.R0, 0, unreadable))
			p.globLoop(glob, size-1, ended)
		}
		return false
	}
	size := textSize(v)
	for off := 0; off < min(size, textChunk*textChunks); off += textChunk {
		n := min(size-off, textChunk)
		p.readArrayAt(v, off, n, unreadable)
		p.globLoop(glob, n, ended)
	}
	return size <= textChunk*textChunks
}

// globLoop matches the characters in the buffer, up to a NUL.
func (p *program) globLoop(glob *compiler.Pattern, size int, ended string) {
	next := p.fresh("char")
	p.move(asm.R4, asm.RFP, p.buffer)
	p.emit(asm.Mov.Imm(asm.R0, 0))
	p.label(next)
	p.emit(asm.LoadMem(asm.R1, asm.R4, 0, asm.Byte), asm.JEq.Imm(asm.R1, 0, ended))
	p.elements(glob)
	p.emit(
		asm.LoadImm(asm.R2, int64(glob.Stars), asm.DWord),
		asm.And.Reg(asm.R2, rState),
		asm.And.Reg(rState, asm.R3),
		asm.LSh.Imm(rState, 1),
		asm.Or.Reg(rState, asm.R2),
		asm.Add.Imm(asm.R4, 1),
		asm.Add.Imm(asm.R0, 1),
		asm.JLT.Imm(asm.R0, int32(size), next),
	)
}

// elements sets the bits in R3 of the elements that match the character in R1.
// It does not jump: the verifier would follow each jump for each character.
func (p *program) elements(glob *compiler.Pattern) {
	var anything uint64
	var same [256]uint64 // elements that are one character
	var sets []int
	for i, e := range glob.Elements {
		switch {
		case e.Not && len(e.Ranges) == 0:
			anything |= 1 << i
		case !e.Not && len(e.Ranges) == 1 && e.Ranges[0].Low == e.Ranges[0].High:
			same[e.Ranges[0].Low] |= 1 << i
		default:
			sets = append(sets, i)
		}
	}
	p.emit(asm.LoadImm(asm.R3, int64(anything), asm.DWord))
	for c, elements := range same {
		if elements != 0 {
			p.emit(asm.Mov.Imm(asm.R5, 0))
			p.inRange(spec.ByteRange{Low: byte(c), High: byte(c)})
			p.addElements(elements)
		}
	}
	for _, i := range sets {
		p.emit(asm.Mov.Imm(asm.R5, 0))
		for _, r := range glob.Elements[i].Ranges {
			p.inRange(r)
		}
		if glob.Elements[i].Not {
			p.emit(asm.Xor.Imm(asm.R5, 1))
		}
		p.addElements(1 << i)
	}
}

// inRange sets R5 to 1 if the character in R1 is in a range.
func (p *program) inRange(r spec.ByteRange) {
	p.emit(
		asm.Mov.Reg(asm.R2, asm.R1),
		asm.Sub.Imm(asm.R2, int32(r.Low)),
		asm.And.Imm(asm.R2, 0xff),
		asm.Sub.Imm(asm.R2, int32(r.High)-int32(r.Low)+1), // negative if it is in the range
		asm.RSh.Imm(asm.R2, 63),
		asm.Or.Reg(asm.R5, asm.R2),
	)
}

// addElements adds the mask to R3 if R5 is 1. It multiplies: for a mask made by
// negation, the verifier would follow both values for each character (7.0).
func (p *program) addElements(mask uint64) {
	p.emit(
		asm.LoadImm(asm.R2, int64(mask), asm.DWord),
		asm.Mul.Reg(asm.R5, asm.R2),
		asm.Or.Reg(asm.R3, asm.R5),
	)
}
