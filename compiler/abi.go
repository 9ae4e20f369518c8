package compiler

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// Word is where one 8-byte word of a parameter or result is.
type Word struct {
	Slot  int   // index in a trampoline's context
	Reg   int16 // offset in struct pt_regs; -1: on the stack
	Stack int   // from the stack pointer at entry, if Reg is -1
}

// Param is a parameter of a function, or its result.
type Param struct {
	Name  string
	Type  btf.Type
	Size  int    // in bytes
	Words []Word // where it is passed
	// Typed: a trampoline program may load the word itself. The verifier
	// refuses it for pointers to anything but a record or void.
	Typed bool
	// InMemory: the result is a record that the caller made room for; the
	// word is its address. AAPCS64 keeps that only until the function begins:
	// there is no word.
	InMemory bool
	// Copy is the record that Type points to, if the address of a copy is passed
	// instead of the record, as AAPCS64 does where it takes more than two words.
	Copy btf.Type
}

// Signature is a function's parameters and result with their places.
type Signature struct {
	Params   []Param
	Result   *Param // nil: void
	Variadic bool
}

// mostParams bounds the parameters of a function, as $argN can name them.
const mostParams = 255

// place lays out a prototype by arch's calling convention: System V's (AMD64
// ABI, 3.2.3) or Arm's (AAPCS64, 6.8.2), with the general registers alone.
func place(proto *btf.FuncProto, arch *Arch) (*Signature, error) {
	sig := &Signature{}
	if len(proto.Params) > mostParams {
		return nil, fmt.Errorf("it has %d parameters, and %d is the limit", len(proto.Params), mostParams)
	}
	var reg, slot, stack int
	if result, err := placeResult(proto.Return, arch); err != nil {
		return nil, err
	} else if result != nil {
		sig.Result = result
		if result.InMemory && !arch.AAPCS64 {
			reg++ // the hidden pointer to the result
		}
	}
	for _, p := range proto.Params {
		if isVoid(p.Type) && p.Name == "" {
			sig.Variadic = true
			continue
		}
		param := Param{Name: p.Name, Type: p.Type, Typed: typedLoad(p.Type)}
		if !spec.IsName(p.Name) {
			param.Name = fmt.Sprintf("arg%d", len(sig.Params)+1)
		}
		size, err := btf.Sizeof(p.Type)
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %w", param.Name, err)
		}
		if size > maxStore {
			return nil, fmt.Errorf("parameter %s: its %d bytes do not fit on a stack", param.Name, size)
		}
		if arch.AAPCS64 && size > 16 {
			param.Copy, param.Type, param.Typed, size = p.Type, &btf.Pointer{Target: p.Type}, false, 8
		}
		param.Size = size
		n := (size + 7) / 8
		if arch.AAPCS64 && size == 16 && quad(p.Type, map[btf.Type]bool{}, 0) { // it has a register of an even number
			reg += reg % 2
			stack += stack % 16
		}
		inRegs := reg+n <= len(arch.ArgRegs) && (arch.AAPCS64 || !byMemory(p.Type, size))
		if arch.AAPCS64 && !inRegs {
			reg = len(arch.ArgRegs) // no later argument takes what is left
		}
		for i := range n {
			w := Word{Slot: slot + i, Reg: -1, Stack: arch.StackArg + stack}
			if inRegs {
				w.Reg = arch.ArgRegs[reg]
				reg++
			} else {
				stack += 8
			}
			param.Words = append(param.Words, w)
		}
		slot += n
		sig.Params = append(sig.Params, param)
	}
	if sig.Result != nil {
		for i := range sig.Result.Words {
			sig.Result.Words[i].Slot = slot + i
		}
	}
	return sig, nil
}

func placeResult(t btf.Type, arch *Arch) (*Param, error) {
	if isVoid(t) {
		return nil, nil
	}
	size, err := btf.Sizeof(t)
	if err != nil {
		return nil, fmt.Errorf("return value: %w", err)
	}
	r := &Param{Name: "return", Type: t, Size: size, Typed: typedLoad(t)}
	n := (size + 7) / 8
	if arch.AAPCS64 && size > 16 {
		r.InMemory, n = true, 0
	} else if !arch.AAPCS64 && byMemory(t, size) {
		r.InMemory, n = true, 1
	}
	for i := range n {
		r.Words = append(r.Words, Word{Reg: arch.RetRegs[i]})
	}
	return r, nil
}

// words is the number of argument words that a trampoline would pass.
func (s *Signature) words() int {
	n := 0
	for _, p := range s.Params {
		n += len(p.Words)
	}
	return n
}

// byMemory says whether System V passes a value in memory: it is larger than two
// registers, or a record with something in it that is not aligned.
func byMemory(t btf.Type, size int) bool {
	return size > 16 || isRecord(t) && misaligned(t, 0, map[part]bool{}, 0)
}

// part is a type at an offset in a record.
type part struct {
	typ btf.Type
	at  int
}

// misaligned says whether a number in t is not at a multiple of its size, if t
// begins at an offset. Of arrays compilers look at the first element. What has
// been seen, or is too far away for the record, is left out: broken BTF may go
// round in circles.
func misaligned(t btf.Type, at int, seen map[part]bool, depth int) bool {
	if seen[part{t, at}] || at > 16 || depth > maxTypeDepth {
		return false
	}
	seen[part{t, at}] = true
	if a, ok := btf.As[*btf.Array](t); ok {
		return misaligned(a.Type, at, seen, depth+1)
	}
	members, ok := recordMembers(t)
	if !ok {
		size, err := btf.Sizeof(t)
		return err == nil && size > 0 && at%min(size, 16) != 0
	}
	return slices.ContainsFunc(members, func(m btf.Member) bool {
		return m.BitfieldSize == 0 && misaligned(m.Type, at+int(m.Offset.Bytes()), seen, depth+1)
	})
}

// quad says whether there is a number of 16 bytes in t, which has as many itself.
func quad(t btf.Type, seen map[btf.Type]bool, depth int) bool {
	if a, ok := btf.As[*btf.Array](t); ok {
		return depth <= maxTypeDepth && quad(a.Type, seen, depth+1)
	}
	if !isRecord(t) {
		size, err := btf.Sizeof(t)
		return err == nil && size == 16
	}
	return slices.ContainsFunc(unseenMembers(t, seen, depth), func(m btf.Member) bool { return quad(m.Type, seen, depth+1) })
}

// typedLoad says whether every verifier since 5.10 lets a tracing program load
// this argument from its context (btf_ctx_access in kernel/bpf/btf.c).
func typedLoad(t btf.Type) bool {
	switch t := btf.UnderlyingType(t).(type) {
	case *btf.Int:
		return t.Size <= 8
	case *btf.Enum:
		return true
	case *btf.Pointer:
		if isVoid(t.Target) {
			_, plain := t.Target.(*btf.Void) // const void is refused by 5.10
			return plain
		}
		_, ok := recordMembers(t.Target)
		return ok && !tagged(t)
	}
	return false
}
