package resolve

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// mostParams is the largest number of parameters of a function, as $argN can
// name them.
const mostParams = 255

// Place lays out the parameters and the result of a prototype by arch's calling
// convention: System V's (AMD64 ABI, 3.2.3) or Arm's (AAPCS64, 6.8.2). It uses
// the general registers only.
func Place(proto *btf.FuncProto, arch *compiler.Arch) (*compiler.Signature, error) {
	sig := &compiler.Signature{}
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
		if compiler.IsVoid(p.Type) && p.Name == "" {
			sig.Variadic = true
			continue
		}
		param := compiler.Param{Name: p.Name, Type: p.Type, Typed: typedLoad(p.Type), Pointer: pointsToStructure(p.Type)}
		if !spec.IsName(p.Name) {
			param.Name = fmt.Sprintf("arg%d", len(sig.Params)+1)
		}
		size, err := btf.Sizeof(p.Type)
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %w", param.Name, err)
		}
		if size > compiler.MaxStore {
			return nil, fmt.Errorf("parameter %s: its %d bytes do not fit on a stack", param.Name, size)
		}
		if arch.AAPCS64 && size > 16 {
			param.Copy, param.Type, param.Typed, size = p.Type, &btf.Pointer{Target: p.Type}, false, 8
		}
		param.Size = size
		n := (size + 7) / 8
		if arch.AAPCS64 && size == 16 && quad(p.Type, map[btf.Type]bool{}, 0) { // begins in a register with an even number
			reg += reg % 2
			stack += stack % 16
		}
		inRegs := reg+n <= len(arch.ArgRegs) && (arch.AAPCS64 || !byMemory(p.Type, size))
		if arch.AAPCS64 && !inRegs {
			reg = len(arch.ArgRegs) // no later argument uses the remaining registers
		}
		for i := range n {
			w := compiler.Word{Slot: slot + i, Reg: -1, Stack: arch.StackArg + stack}
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

func placeResult(t btf.Type, arch *compiler.Arch) (*compiler.Param, error) {
	if compiler.IsVoid(t) {
		return nil, nil
	}
	size, err := btf.Sizeof(t)
	if err != nil {
		return nil, fmt.Errorf("return value: %w", err)
	}
	r := &compiler.Param{Name: "return", Type: t, Size: size, Typed: typedLoad(t), Pointer: pointsToStructure(t)}
	n := (size + 7) / 8
	if arch.AAPCS64 && size > 16 {
		r.InMemory, n = true, 0
	} else if !arch.AAPCS64 && byMemory(t, size) {
		r.InMemory, n = true, 1
	}
	for i := range n {
		r.Words = append(r.Words, compiler.Word{Reg: arch.RetRegs[i]})
	}
	return r, nil
}

// byMemory reports whether System V passes a value in memory: it is larger than
// two registers, or a structure with a part that is not aligned.
func byMemory(t btf.Type, size int) bool {
	return size > 16 || isStructure(t) && misaligned(t, 0, map[part]bool{}, 0)
}

// part is a type at an offset in a structure.
type part struct {
	typ btf.Type
	at  int
}

// misaligned reports whether a number in t is not at a multiple of its size, if
// t begins at offset at. As in compilers, the first element stands for an array.
// Parts that have been seen, or are too far away for the structure, are skipped:
// broken BTF may have cycles.
func misaligned(t btf.Type, at int, seen map[part]bool, depth int) bool {
	if seen[part{t, at}] || at > 16 || depth > compiler.MaxTypeDepth {
		return false
	}
	seen[part{t, at}] = true
	if a, ok := btf.As[*btf.Array](t); ok {
		return misaligned(a.Type, at, seen, depth+1)
	}
	members, ok := compiler.Members(t)
	if !ok {
		size, err := btf.Sizeof(t)
		return err == nil && size > 0 && at%min(size, 16) != 0
	}
	return slices.ContainsFunc(members, func(m btf.Member) bool {
		return m.BitfieldSize == 0 && misaligned(m.Type, at+int(m.Offset.Bytes()), seen, depth+1)
	})
}

// quad reports whether t, a type of 16 bytes, contains a number of 16 bytes.
func quad(t btf.Type, seen map[btf.Type]bool, depth int) bool {
	if a, ok := btf.As[*btf.Array](t); ok {
		return depth <= compiler.MaxTypeDepth && quad(a.Type, seen, depth+1)
	}
	if !isStructure(t) {
		size, err := btf.Sizeof(t)
		return err == nil && size == 16
	}
	return slices.ContainsFunc(compiler.UnseenMembers(t, seen, depth), func(m btf.Member) bool { return quad(m.Type, seen, depth+1) })
}

// typedLoad reports whether every verifier since 5.10 lets a tracing program
// load this argument from its context (btf_ctx_access in kernel/bpf/btf.c).
func typedLoad(t btf.Type) bool {
	switch t := btf.UnderlyingType(t).(type) {
	case *btf.Int:
		return t.Size <= 8
	case *btf.Enum:
		return true
	case *btf.Pointer:
		if compiler.IsVoid(t.Target) {
			_, plain := t.Target.(*btf.Void) // 5.10 refuses const void
			return plain
		}
		_, ok := compiler.Members(t.Target)
		return ok && !tagged(t)
	}
	return false
}

// ArchOf determines the architecture of a kernel by its struct pt_regs. If the
// types lack it, ArchOf returns the architecture of this machine.
func ArchOf(kernel *btf.Spec) (*compiler.Arch, error) {
	for _, a := range compiler.Arches {
		if at, ok := compiler.MemberOffset(kernel, "pt_regs", a.Marks); ok && at == int(a.Registers[a.Marks]) {
			return a, nil
		}
	}
	if _, err := kernel.AnyTypeByName("pt_regs"); errors.Is(err, btf.ErrNotFound) {
		return compiler.NativeArch()
	}
	return nil, errors.New("the types are of an architecture whose registers ksnoop does not know: it knows amd64 and arm64, so give it the BTF of such a kernel")
}
