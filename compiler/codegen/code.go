package codegen

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// Registers of a generated program. R0 to R5 do not survive a helper call.
const (
	rContext = asm.R6 // the program's context
	rOut     = asm.R7 // the record or stash entry that is being filled
	rBase    = asm.R8 // the pointer that an access is based on
	rStash   = asm.R9 // the stash entry of the call
)

// Offsets in a generated program's stack frame.
const (
	spPIDTID  = -8
	spScratch = -16  // scratch space of one word
	spIndex   = -24  // key of an array with one element of zeroes
	spEnded   = -24  // number of calls of the function whose returns were missed, see program.settle
	spKey     = -32  // key of another map
	spFaults  = -40  // bytes: 1 if an "or" met a value that could not be read, see program.anyOf
	spFlags   = -48  // outcomes of conditions at entry
	spNow     = -48  // the time, where a program uses it several times, see program.readClock
	spTag     = -56  // the call's tag, see program.frame
	spTask    = -64  // the thread's task_struct; with the tag, it is the key of a large value
	spNear    = -72  // the tag of an outer call
	spSpill   = -88  // two registers
	spBig     = -104 // the key of another call's large value
	spFree    = -104 // the rest is allocated downwards
	stackSize = 512
)

// code collects instructions.
type code struct {
	insns  asm.Instructions
	jumps  map[string]bool // labels that instructions refer to
	labels int
	symbol string // label of the next instruction
	source string // description of the next instruction
	cold   []cold
}

// cold is code that is seldom reached, and only by its label.
type cold struct {
	label string
	emit  func()
}

// later defers code to the end of the program, if anything jumps to it, so that
// the common path does not jump. It is not inlined: it has 50 callers.
//
//go:noinline
func (c *code) later(label string, emit func()) {
	c.cold = append(c.cold, cold{label, emit})
}

// finish appends deferred code that is jumped to. The verifier refuses
// unreachable code.
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

// refers reports whether an instruction jumps to a label.
func (c *code) refers(label string) bool { return c.jumps[label] }

// step tags the next instruction with a description, for listings. It is not inlined:
// it has 150 callers, as has fresh.
//
//go:noinline
func (c *code) step(format string, args ...any) {
	c.source = format
	if len(args) > 0 {
		c.source = fmt.Sprintf(format, args...)
	}
}

// label names the next instruction.
func (c *code) label(name string) {
	if c.symbol != "" { // an instruction can have only one label
		c.emit(asm.Mov.Imm(asm.R0, 0))
	}
	c.symbol = name
}

// fresh returns a new label.
//
//go:noinline
func (c *code) fresh(hint string) string {
	c.labels++
	return hint + strconv.Itoa(c.labels)
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

// jump jumps to label if "dst op constant" holds. The constant of an
// instruction has 32 bits and is sign-extended; larger constants are loaded
// into R2.
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

// setWord stores a number in the stack frame. It uses R1, because the assembler
// has no 8-byte store of an immediate.
func (c *code) setWord(off int16, v int32) {
	c.emit(asm.Mov.Imm(asm.R1, v), asm.StoreMem(asm.RFP, off, asm.R1, asm.DWord))
}

// copyWord copies a word from an offset from one register to an offset from another. It
// uses R1.
func (c *code) copyWord(to asm.Register, toOff int16, from asm.Register, fromOff int16) {
	c.emit(asm.LoadMem(asm.R1, from, fromOff, asm.DWord), asm.StoreMem(to, toOff, asm.R1, asm.DWord))
}

// extend extends the loaded bytes of a scalar in reg to 64 bits.
func (c *code) extend(reg asm.Register, s *compiler.Scalar) {
	if s.Width() == 64 {
		return
	}
	if !s.Signed && s.Shift == 0 && s.Width() == 32 {
		c.emit(asm.Mov.Reg32(reg, reg))
		return
	}
	c.emit(asm.LSh.Imm(reg, int32(64-s.Shift-s.Width())), shiftRight(s.Signed).Imm(reg, int32(64-s.Width())))
}

// shiftRight returns the shift to the right that keeps the sign of signed numbers.
func shiftRight(signed bool) asm.ALUOp {
	if signed {
		return asm.ArSh
	}
	return asm.RSh
}

// load returns a load of size bytes, which must be 1, 2, 4 or 8.
func load(dst, src asm.Register, off, size int) asm.Instruction {
	width := [...]asm.Size{1: asm.Byte, 2: asm.Half, 4: asm.Word, 8: asm.DWord}[size]
	return asm.LoadMem(dst, src, int16(off), width)
}

// mapPtr returns a load of the map with this name in the collection.
func mapPtr(dst asm.Register, name string) asm.Instruction {
	return asm.LoadMapPtr(dst, 0).WithReference(name)
}

// compareExchange returns an instruction that stores src at dst+off if what is there
// equals R0, and loads into R0 what was there.
func compareExchange(dst, src asm.Register, off int16) asm.Instruction {
	return encoded(asm.CmpXchg, dst, src, off)
}

// exchange returns an instruction that stores src at dst+off, and loads into src what
// was there.
func exchange(dst, src asm.Register, off int16) asm.Instruction {
	return encoded(asm.Xchg, dst, src, off)
}

// fetchAdd returns an instruction that adds src to dst+off, and loads into src what
// was there.
func fetchAdd(dst, src asm.Register, off int16) asm.Instruction {
	return encoded(asm.FetchAdd, dst, src, off)
}

// encoded returns an atomic instruction. The assembler takes the operation from
// Constant. The opcode has it only for readers: without this, all of them would be
// additions.
func encoded(op asm.AtomicOp, dst, src asm.Register, off int16) asm.Instruction {
	in := op.Mem(dst, src, asm.DWord, off)
	in.Constant = int64(op >> 8)
	return in
}

// How many jumps make the verifier store its state: in a loop, those that add up to 20
// with the loop's own, and elsewhere 2 if there are 8 instructions.
const (
	loopJumps    = 12
	meetingJumps = 8
)

// checkpoint makes the verifier store its state, so that it does not go on from here once for
// each way to this point. It stores one only after so many jumps, in a loop 20, or 100
// instructions (is_state_visited, since 5.3). Jumps to the next instruction are left out of
// the program that runs (opt_remove_nops, since 5.1).
func (c *code) checkpoint(jumps int) {
	c.step("the verifier stores its state; these jumps do not run")
	for range jumps {
		next := c.fresh("stored")
		c.emit(asm.Ja.Label(next))
		c.label(next)
	}
}
