package listing

import (
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strings"
	"unicode"

	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// listing prints instructions under comments that explain each step. The numbers are
// those of the verifier's log: some instructions take two.
func listing(w io.Writer, insns asm.Instructions) {
	for it := insns.Iterate(); it.Next(); {
		if label := it.Ins.Symbol(); label != "" {
			fmt.Fprintf(w, "%s:\n", label)
		}
		if step := it.Ins.Source(); step != nil {
			fmt.Fprintf(w, "        // %s\n", step)
		}
		fmt.Fprintf(w, "%5d   %s\n", it.Offset, instructionText(*it.Ins))
	}
}

// registers is the comment on what the registers of every program hold.
const registers = "r6 is the context, r7 the record, r8 the address that is being read, r9 what was kept of the call, r10 the stack frame"

// programs prints the instructions of all programs.
func programs(w io.Writer, unit *compiler.Unit) {
	fmt.Fprintf(w, "\nIn the programs %s.\n", registers)
	places := placeNames(unit)
	for _, name := range programNames(unit) {
		insns := unit.Collection.Programs[name].Instructions
		fmt.Fprintf(w, "\nprogram %q: %d instructions, for %s\n\n", name, len(insns), some(places[name]))
		listing(w, insns)
	}
}

// programNames returns the names of all programs, the entry side of a function first.
func programNames(unit *compiler.Unit) (names []string) {
	order := map[*compiler.Probe]int{}
	for i, p := range unit.Probes() {
		order[p] = i
	}
	attachments := slices.Clone(unit.Attachments)
	slices.Reverse(attachments) // returns are attached first
	sort.SliceStable(attachments, func(i, j int) bool {
		return order[attachments[i].Places[0].Probe] < order[attachments[j].Places[0].Probe]
	})
	seen := map[string]bool{}
	for _, a := range attachments {
		for _, name := range a.Programs() {
			if !seen[name] {
				names = append(names, name)
			}
			seen[name] = true
		}
	}
	for _, c := range unit.Companions {
		names = append(names, c.Program)
	}
	return names
}

// placeNames returns the names of the functions that each program is attached to.
func placeNames(unit *compiler.Unit) map[string][]string {
	names := map[string][]string{}
	for _, a := range unit.Attachments {
		for _, p := range a.Places {
			name := p.Symbol
			if p.Addr != 0 && len(p.Probe.Func.Addrs) > 0 { // the symbol alone does not say it
				name += fmt.Sprintf(" at %#x", p.Addr)
			}
			names[a.Program] = append(names[a.Program], name)
			if own := a.ProgramAt(p); own != a.Program {
				names[own] = append(names[own], name)
			}
		}
	}
	for _, c := range unit.Companions {
		names[c.Program] = append(names[c.Program], "tp:"+c.Tracepoint)
	}
	return names
}

// instructionText returns an instruction as in the verifier's log, but with the
// names of labels, maps and functions.
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
	case class == asm.StXClass && op.AtomicOp() == asm.CmpXchg:
		return fmt.Sprintf("lock if %s == r0 then = r%d; r0 = the old value", memory(in, in.Dst), in.Src)
	case class == asm.StXClass && op.AtomicOp() == asm.Xchg:
		return fmt.Sprintf("lock swap %s, r%d", memory(in, in.Dst), in.Src)
	case class.IsALU():
		return arithmetic(in)
	case class.IsJump():
		return jump(in)
	}
	return fmt.Sprint(in)
}

// wideLoad returns the load of a map, or of a constant of 8 bytes.
func wideLoad(in asm.Instruction) string {
	switch {
	case in.Src == asm.PseudoMapValue:
		at := ""
		if off := uint64(in.Constant) >> 32; off > 0 {
			at = fmt.Sprintf(" + %d", off)
		}
		return fmt.Sprintf("r%d = value of map %s%s", in.Dst, in.Reference(), at)
	case in.IsLoadFromMap():
		return fmt.Sprintf("r%d = map %s", in.Dst, in.Reference())
	case in.OpCode.IsDWordLoad():
		return fmt.Sprintf("r%d = %s", in.Dst, constant(in.Constant))
	}
	return fmt.Sprint(in)
}

// constant returns n in decimal if it fits into 32 bits, else in hex: it is then a
// mask or an address.
func constant(n int64) string {
	if n >= math.MinInt32 && n <= math.MaxInt32 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%#x", uint64(n))
}

// memory returns the operand at an offset from a register.
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

// register returns rN, or wN for its lower half.
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

// helper returns the kernel's name of a BPF helper: bpf_map_lookup_elem for
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
