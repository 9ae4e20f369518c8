package main

import (
	"fmt"
	"math"
	"strings"
	"unicode"

	"github.com/cilium/ebpf/asm"
)

// instructionText is an instruction as the verifier's log writes it, but with
// the names of labels, maps and functions.
func instructionText(in asm.Instruction) string {
	op := in.OpCode
	switch class := op.Class(); {
	case class == asm.LdClass:
		return wideLoad(in)
	case class == asm.LdXClass && op.Mode() == asm.MemMode:
		return fmt.Sprintf("r%d = %s", in.Dst, memory(in, in.Src))
	case class == asm.StClass && op.Mode() == asm.MemMode:
		return fmt.Sprintf("%s = %d", memory(in, in.Dst), in.Constant)
	case class == asm.StXClass && op.Mode() == asm.MemMode:
		return fmt.Sprintf("%s = r%d", memory(in, in.Dst), in.Src)
	case class == asm.StXClass && op.AtomicOp() == asm.AddAtomic:
		return fmt.Sprintf("lock %s += r%d", memory(in, in.Dst), in.Src)
	case class.IsALU():
		return arithmetic(in)
	case class.IsJump():
		return jump(in)
	}
	return fmt.Sprint(in)
}

// wideLoad is the load of a map, or of a constant of 8 bytes.
func wideLoad(in asm.Instruction) string {
	switch {
	case in.Src == asm.PseudoMapValue:
		return fmt.Sprintf("r%d = value of map %s", in.Dst, in.Reference())
	case in.IsLoadFromMap():
		return fmt.Sprintf("r%d = map %s", in.Dst, in.Reference())
	case in.OpCode.IsDWordLoad():
		return fmt.Sprintf("r%d = %s", in.Dst, constant(in.Constant))
	}
	return fmt.Sprint(in)
}

// constant is decimal if that is short, so that masks and addresses are hex.
func constant(n int64) string {
	if n >= math.MinInt32 && n <= math.MaxInt32 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%#x", uint64(n))
}

// memory is what is at an offset from a register.
func memory(in asm.Instruction, base asm.Register) string {
	sign, off := "+", int(in.Offset)
	if off < 0 {
		sign, off = "-", -off
	}
	return fmt.Sprintf("*(u%d *)(r%d %s %d)", 8*in.OpCode.Size().Sizeof(), base, sign, off)
}

// aluSigns are the operators of arithmetic instructions.
var aluSigns = map[asm.ALUOp]string{
	asm.Add: "+=", asm.Sub: "-=", asm.Mul: "*=", asm.Div: "/=", asm.Mod: "%=", asm.Or: "|=", asm.And: "&=", asm.Xor: "^=",
	asm.LSh: "<<=", asm.RSh: ">>=", asm.ArSh: "s>>=", asm.Mov: "=",
}

func arithmetic(in asm.Instruction) string {
	wide := in.OpCode.Class() == asm.ALU64Class
	dst := register(in.Dst, wide)
	switch op := in.OpCode.ALUOp(); op {
	case asm.Neg:
		return fmt.Sprintf("%s = -%s", dst, dst)
	case asm.Swap:
		order := "le"
		if in.OpCode.Endianness() == asm.BE {
			order = "be"
		}
		return fmt.Sprintf("r%d = %s%d r%d", in.Dst, order, in.Constant, in.Dst)
	default:
		sign, ok := aluSigns[op]
		if !ok {
			return fmt.Sprint(in)
		}
		return fmt.Sprintf("%s %s %s", dst, sign, source(in, wide))
	}
}

// register is rN, or wN for its lower half.
func register(r asm.Register, wide bool) string {
	if wide {
		return fmt.Sprintf("r%d", r)
	}
	return fmt.Sprintf("w%d", r)
}

func source(in asm.Instruction, wide bool) string {
	if in.OpCode.Source() == asm.RegSource {
		return register(in.Src, wide)
	}
	return fmt.Sprint(in.Constant)
}

// jumpSigns are the operators of conditional jumps.
var jumpSigns = map[asm.JumpOp]string{
	asm.JEq: "==", asm.JNE: "!=", asm.JGT: ">", asm.JGE: ">=", asm.JLT: "<", asm.JLE: "<=", asm.JSet: "&",
	asm.JSGT: "s>", asm.JSGE: "s>=", asm.JSLT: "s<", asm.JSLE: "s<=",
}

func jump(in asm.Instruction) string {
	op := in.OpCode.JumpOp()
	switch {
	case op == asm.Exit:
		return "exit"
	case op == asm.Ja:
		return "goto " + in.Reference()
	case op == asm.Call && in.Src == asm.PseudoKfuncCall:
		return fmt.Sprintf("call kernel function #%d", in.Constant)
	case op == asm.Call && in.IsBuiltinCall():
		return "call " + helper(asm.BuiltinFunc(in.Constant))
	}
	sign, ok := jumpSigns[op]
	if !ok {
		return fmt.Sprint(in)
	}
	wide := in.OpCode.Class() == asm.JumpClass
	return fmt.Sprintf("if %s %s %s goto %s", register(in.Dst, wide), sign, source(in, wide), in.Reference())
}

// helper is the kernel's name of a BPF helper: bpf_map_lookup_elem for
// FnMapLookupElem.
func helper(fn asm.BuiltinFunc) string {
	name := []byte("bpf")
	for _, r := range strings.TrimPrefix(fn.String(), "Fn") {
		if unicode.IsUpper(r) {
			name = append(name, '_')
		}
		name = append(name, byte(unicode.ToLower(r)))
	}
	return string(name)
}
