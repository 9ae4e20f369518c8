package compiler

import (
	"fmt"
	"math"
	"slices"

	"github.com/cilium/ebpf/asm"
)

// Registers of a generated program. R0 to R5 do not survive a helper call.
const (
	rContext = asm.R6 // the program's context
	rOut     = asm.R7 // the record, or the stash entry, that is being filled
	rBase    = asm.R8 // the pointer that an access is based on
	rStash   = asm.R9 // the stash entry of the call
)

// Offsets in a generated program's stack frame.
const (
	spPIDTID  = -8
	spScratch = -16 // one word
	spFrame   = -24 // the call's frame address, as the key of a stash
	spKey     = -32 // key of an array map
	spFault   = -40 // 1 if a test met a value that could not be read
	spFlags   = -48 // outcomes of tests at entry
	spFree    = -48 // the rest is given out downwards
	stackSize = 512
)

// code collects instructions.
type code struct {
	insns  asm.Instructions
	jumps  map[string]bool // labels that instructions refer to
	labels int
	symbol string // label of the next instruction
	source string // what the next instruction begins
	cold   []cold
}

// cold is code that is seldom reached, by its label alone.
type cold struct {
	label string
	emit  func()
}

// later puts code behind the program, if anything jumps to it: the jumps of the
// common way go straight on.
func (c *code) later(label string, emit func()) {
	c.cold = append(c.cold, cold{label, emit})
}

// finish appends what was put off. The verifier refuses code that nothing
// reaches.
func (c *code) finish() {
	for {
		i := slices.IndexFunc(c.cold, func(l cold) bool { return c.refers(l.label) })
		if i < 0 {
			c.cold = nil
			return
		}
		next := c.cold[i]
		c.cold = slices.Delete(c.cold, i, i+1)
		c.label(next.label)
		next.emit()
	}
}

// refers says whether an instruction jumps to a label.
func (c *code) refers(label string) bool { return c.jumps[label] }

// step tags the next instruction with what it begins, for listings.
func (c *code) step(format string, args ...any) {
	c.source = fmt.Sprintf(format, args...)
}

// label names the next instruction.
func (c *code) label(name string) {
	if c.symbol != "" { // two labels on one instruction are not possible
		c.emit(asm.Mov.Imm(asm.R0, 0))
	}
	c.symbol = name
}

// fresh is a new label.
func (c *code) fresh(hint string) string {
	c.labels++
	return fmt.Sprintf("%s%d", hint, c.labels)
}

func (c *code) emit(insns ...asm.Instruction) {
	for _, in := range insns {
		if to := in.Reference(); to != "" {
			if c.jumps == nil {
				c.jumps = map[string]bool{}
			}
			c.jumps[to] = true
		}
		if c.symbol != "" {
			in, c.symbol = in.WithSymbol(c.symbol), ""
		}
		if c.source != "" {
			in, c.source = in.WithSource(asm.Comment(c.source)), ""
		}
		c.insns = append(c.insns, in)
	}
}

// jump goes to label if dst op constant. The constant of an instruction is 32
// bits, sign-extended: others go through R2.
func (c *code) jump(op asm.JumpOp, dst asm.Register, constant uint64, label string) {
	if v := int64(constant); v >= math.MinInt32 && v <= math.MaxInt32 {
		c.emit(op.Imm(dst, int32(v), label))
		return
	}
	c.emit(asm.LoadImm(asm.R2, int64(constant), asm.DWord), op.Reg(dst, asm.R2, label))
}

// move puts src plus an offset into dst.
func (c *code) move(dst, src asm.Register, off int) {
	if dst != src {
		c.emit(asm.Mov.Reg(dst, src))
	}
	if off != 0 {
		c.emit(asm.Add.Imm(dst, int32(off)))
	}
}

// setWord stores a number in the stack frame, by way of R1: the assembler knows
// no store of an immediate word of 8 bytes.
func (c *code) setWord(off int16, v int32) {
	c.emit(asm.Mov.Imm(asm.R1, v), asm.StoreMem(asm.RFP, off, asm.R1, asm.DWord))
}

// extend turns the loaded bytes of a scalar in reg into 64 bits.
func (c *code) extend(reg asm.Register, s *Scalar) {
	if s.width() == 64 {
		return
	}
	if !s.Signed && s.Shift == 0 && s.width() == 32 {
		c.emit(asm.Mov.Reg32(reg, reg))
		return
	}
	c.emit(asm.LSh.Imm(reg, int32(64-s.Shift-s.width())))
	if s.Signed {
		c.emit(asm.ArSh.Imm(reg, int32(64-s.width())))
	} else {
		c.emit(asm.RSh.Imm(reg, int32(64-s.width())))
	}
}

// load is a load of size bytes, which must be 1, 2, 4 or 8.
func load(dst, src asm.Register, off, size int) asm.Instruction {
	width := map[int]asm.Size{1: asm.Byte, 2: asm.Half, 4: asm.Word, 8: asm.DWord}[size]
	return asm.LoadMem(dst, src, int16(off), width)
}

// mapPtr loads a map by its name in the collection.
func mapPtr(dst asm.Register, name string) asm.Instruction {
	return asm.LoadMapPtr(dst, 0).WithReference(name)
}
