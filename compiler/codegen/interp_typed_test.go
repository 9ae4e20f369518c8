package codegen

import (
	"errors"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
)

// typedPointers models what the verifier knows of the registers of a trampoline
// program: which of them hold pointers, as in the kernel's
// adjust_ptr_min_max_vals and btf_struct_access. Pointers are loaded from the
// context and through each other.
type typedPointers struct {
	args    map[uint64]btf.Type // structures that context words point to, by the addresses of the words
	mayNull bool                // for arguments of tracepoints, from 6.13 on
	regs    [11]btf.Type        // types that registers point to; nil for numbers and other pointers
	stack   map[uint64]btf.Type // types of words stored on the stack
}

// context sets the types of the context's words for a program of a kind on a
// function.
func (t *typedPointers) context(fn *compiler.Function, kind compiler.Kind, ctx uint64) {
	t.args, t.mayNull = map[uint64]btf.Type{}, kind == compiler.TpBTF
	if !kind.Trampoline() {
		return
	}
	params := fn.Params
	if kind == compiler.Fexit && fn.Result != nil {
		params = append([]compiler.Param{*fn.Result}, params...)
	}
	for _, p := range params {
		if record := recordBehind(p.Type); record != nil && len(p.Words) == 1 {
			t.args[ctx+uint64(8*p.Words[0].Slot)] = record
		}
	}
}

// recordBehind returns the structure that a pointer points to, or nil.
func recordBehind(t btf.Type) btf.Type {
	ptr, ok := btf.UnderlyingType(t).(*btf.Pointer)
	if !ok {
		return nil
	}
	switch record := btf.UnderlyingType(ptr.Target).(type) {
	case *btf.Struct, *btf.Union:
		return record
	}
	return nil
}

func (t *typedPointers) begin() { t.regs, t.stack = [11]btf.Type{}, map[uint64]btf.Type{} }

// clobber forgets the registers that a call changes.
func (t *typedPointers) clobber() { clear(t.regs[:6]) }

// checkTyped tracks types through an instruction and refuses the arithmetic
// that the verifier refuses.
func (m *machine) checkTyped(in *instruction) error {
	t := &m.typed
	fromReg := in.OpCode.Source() == asm.RegSource
	switch {
	case in.class.IsALU():
		dst, err := t.alu(in, fromReg)
		t.regs[in.Dst] = dst
		return err
	case in.class == asm.LdXClass:
		t.regs[in.Dst] = t.loaded(in, m.regs[in.Src]+uint64(int64(in.Offset)))
	case in.class == asm.LdClass:
		t.regs[in.Dst] = nil
	case in.class == asm.StXClass && in.OpCode.Mode() == asm.AtomicMode && t.regs[in.Src] != nil:
		return errors.New("a typed pointer is added")
	case in.class == asm.StXClass && in.OpCode.Size() == asm.DWord:
		t.stack[m.regs[in.Dst]+uint64(int64(in.Offset))] = t.regs[in.Src]
	case in.class == asm.StClass, in.class == asm.StXClass:
		delete(t.stack, m.regs[in.Dst]+uint64(int64(in.Offset)))
	case in.class.IsJump() && in.reads[0] && t.mayNull && t.regs[in.Dst] != nil:
		return errors.New("a typed pointer that the verifier may take for valid is compared")
	}
	return nil
}

// alu returns the type of the destination after the instruction.
func (t *typedPointers) alu(in *instruction, fromReg bool) (btf.Type, error) {
	op, wide := in.OpCode.ALUOp(), in.class == asm.ALU64Class
	dst, src := t.regs[in.Dst], btf.Type(nil)
	if fromReg && op != asm.Swap {
		src = t.regs[in.Src]
	}
	switch {
	case op == asm.Mov && wide:
		return src, nil
	case op == asm.Mov, op == asm.Neg, op == asm.Swap, dst == nil && src == nil:
		return nil, nil
	case op == asm.Add && wide && !fromReg && !t.mayNull:
		return dst, nil
	}
	return nil, errors.New("arithmetic with a typed pointer")
}

// loaded returns the type of what a load yields.
func (t *typedPointers) loaded(in *instruction, addr uint64) btf.Type {
	if in.OpCode.Size() != asm.DWord {
		return nil
	}
	if record := t.regs[in.Src]; record != nil {
		return pointerIn(record, uint32(in.Offset)*8, 0)
	}
	if record := t.args[addr]; record != nil {
		return record
	}
	return t.stack[addr]
}

// pointerIn returns the type that a pointer at a bit offset of a structure points
// to, or nil. Kernels before 6.17 treat pointers to anything but a structure as
// numbers.
func pointerIn(t btf.Type, bit uint32, depth int) btf.Type {
	s, ok := btf.UnderlyingType(t).(*btf.Struct)
	if !ok || depth > compiler.MaxTypeDepth {
		return nil
	}
	for _, m := range s.Members {
		size, err := btf.Sizeof(m.Type)
		if at := uint32(m.Offset); err != nil || bit < at || bit >= at+uint32(8*size) {
			continue
		}
		if ptr, ok := btf.UnderlyingType(m.Type).(*btf.Pointer); ok {
			return ptr.Target
		}
		return pointerIn(m.Type, bit-uint32(m.Offset), depth+1)
	}
	return nil
}
