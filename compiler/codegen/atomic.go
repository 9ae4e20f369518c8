package codegen

import "github.com/cilium/ebpf/asm"

// compareExchange stores src at dst+off if R0 is there, and loads into R0 what was
// there.
func compareExchange(dst, src asm.Register, off int16) asm.Instruction {
	return encoded(asm.CmpXchg, dst, src, off)
}

// exchange stores src at dst+off, and loads into src what was there.
func exchange(dst, src asm.Register, off int16) asm.Instruction {
	return encoded(asm.Xchg, dst, src, off)
}

// fetchAdd adds src to dst+off, and loads into src what was there.
func fetchAdd(dst, src asm.Register, off int16) asm.Instruction {
	return encoded(asm.FetchAdd, dst, src, off)
}

// encoded returns an atomic instruction. The assembler writes the operation from
// Constant, not from the code, where it is for readers: without this, all of them
// would be additions.
func encoded(op asm.AtomicOp, dst, src asm.Register, off int16) asm.Instruction {
	in := op.Mem(dst, src, asm.DWord, off)
	in.Constant = int64(op >> 8)
	return in
}
