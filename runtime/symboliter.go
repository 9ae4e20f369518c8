package runtime

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/kallsyms"
)

// iterateSymbols reads the symbol table by a program that the kernel calls with
// each symbol (bpf_iter__ksym, Linux 6.0). Of a few symbols that takes a third of
// the time of /proc/kallsyms, where the kernel makes text of all, and of all of
// them two thirds. Addresses are hidden from the same users.
func (k *Kernel) iterateSymbols(want kallsyms.Wanted) (*kallsyms.Table, error) {
	at, err := findSymbolMembers(k.types)
	if err != nil {
		return nil, err
	}
	coll, err := k.load(&ebpf.CollectionSpec{
		Maps: map[string]*ebpf.MapSpec{"record": {
			Name: "record", Type: ebpf.Array, KeySize: 4, ValueSize: kallsyms.RecordHead + uint32(at.nameSize+at.moduleSize), MaxEntries: 1,
		}},
		Programs: map[string]*ebpf.ProgramSpec{"symbols": {
			Name: "symbols", Type: ebpf.Tracing, AttachType: ebpf.AttachTraceIter, AttachTo: "ksym",
			License: "Dual MIT/GPL", Instructions: at.iterator(prefixesOf(want)),
		}},
	})
	if err != nil {
		return nil, err
	}
	defer coll.Close()
	return iterate(coll.Programs["symbols"], func(r io.Reader) (*kallsyms.Table, error) {
		return kallsyms.ReadRecords(r, want.Keep)
	})
}

// symbolMembers is where struct kallsym_iter has what is wanted of a symbol.
type symbolMembers struct {
	value, kind, exported, shown int
	name, nameSize               int
	module, moduleSize           int
}

func findSymbolMembers(types *btf.Spec) (at symbolMembers, err error) {
	var s *btf.Struct
	if err := types.TypeByName("kallsym_iter", &s); err != nil {
		return at, err
	}
	var errs []error
	find := func(name string) (off, size int) {
		i := slices.IndexFunc(s.Members, func(m btf.Member) bool { return m.Name == name })
		if i < 0 {
			errs = append(errs, fmt.Errorf("struct kallsym_iter has no member %s", name))
			return 0, 0
		}
		size, err := btf.Sizeof(s.Members[i].Type)
		errs = append(errs, err)
		return int(s.Members[i].Offset.Bytes()), size
	}
	at.value, _ = find("value")
	at.kind, _ = find("type")
	at.exported, _ = find("exported")
	at.shown, _ = find("show_value")
	at.name, at.nameSize = find("name")
	at.module, at.moduleSize = find("module_name")
	return at, errors.Join(errs...)
}

// A prefix is up to eight bytes of a name, and which of eight these are.
type prefix struct{ bytes, mask uint64 }

// mostPrefixes is how many the program compares each name with: more take
// longer than to write it.
const mostPrefixes = 64

// prefixesOf are those that the program looks for; none if it takes all names.
// That of a symbol that is always there tells whether addresses are hidden.
func prefixesOf(want kallsyms.Wanted) []prefix {
	var all []prefix
	for _, name := range append([]string{textSymbol}, want.Prefixes...) {
		var b, mask [8]byte
		for i := range copy(b[:], name) {
			mask[i] = 0xff
		}
		p := prefix{binary.NativeEndian.Uint64(b[:]), binary.NativeEndian.Uint64(mask[:])}
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	if want.Prefixes == nil || len(all) > mostPrefixes {
		return nil
	}
	return all
}

// choose leaves the program unless the name begins with one of the prefixes.
func (at symbolMembers) choose(prefixes []prefix) (insns asm.Instructions) {
	if len(prefixes) == 0 {
		return nil
	}
	insns = append(insns, asm.LoadMem(asm.R1, asm.R7, int16(at.name), asm.DWord))
	for _, p := range prefixes {
		insns = append(insns,
			asm.LoadImm(asm.R2, int64(p.mask), asm.DWord),
			asm.And.Reg(asm.R2, asm.R1),
			asm.LoadImm(asm.R3, int64(p.bytes), asm.DWord),
			asm.JEq.Reg(asm.R2, asm.R3, "wanted"),
		)
	}
	return append(insns, asm.Ja.Label("exit"))
}

// iterator makes a program that writes the record of each symbol of which the
// name has one of the prefixes. What the verifier is told of sizes is always so.
func (at symbolMembers) iterator(prefixes []prefix) asm.Instructions {
	var insns asm.Instructions
	for _, part := range []asm.Instructions{
		{
			asm.LoadMem(asm.R7, asm.R1, 8, asm.DWord), // ctx->ksym
			asm.JEq.Imm(asm.R7, 0, "exit"),            // the last time
			asm.LoadMem(asm.R1, asm.R1, 0, asm.DWord), // ctx->meta
			asm.LoadMem(asm.R6, asm.R1, 0, asm.DWord), // ctx->meta->seq
		},
		at.choose(prefixes),
		at.head(),
		copyString(at.nameSize, at.name),
		{
			asm.Mov.Reg(asm.R9, asm.R0),
			asm.Mov.Reg(asm.R1, asm.R8),
			asm.Add.Imm(asm.R1, kallsyms.RecordHead),
			asm.Add.Reg(asm.R1, asm.R9),
		},
		copyString(at.moduleSize, at.module),
		{
			asm.Mov.Reg(asm.R1, asm.R6),
			asm.Mov.Reg(asm.R2, asm.R8),
			asm.Mov.Reg(asm.R3, asm.R9),
			asm.Add.Reg(asm.R3, asm.R0),
			asm.Add.Imm(asm.R3, kallsyms.RecordHead),
			asm.FnSeqWrite.Call(),
			asm.Mov.Imm(asm.R0, 0).WithSymbol("exit"),
			asm.Return(),
		},
	} {
		insns = append(insns, part...)
	}
	return insns
}

// head writes what is before the names, and leaves their place in R1.
func (at symbolMembers) head() asm.Instructions {
	load := func(off int, size asm.Size) asm.Instruction { return asm.LoadMem(asm.R1, asm.R7, int16(off), size) }
	return asm.Instructions{
		asm.LoadMapValue(asm.R8, 0, 0).WithReference("record").WithSymbol("wanted"),
		load(at.shown, asm.Word),
		asm.JEq.Imm(asm.R1, 0, "hidden"),
		load(at.value, asm.DWord),
		asm.StoreMem(asm.R8, 0, asm.R1, asm.DWord).WithSymbol("hidden"), // a zero, if it is not shown
		load(at.kind, asm.Byte),
		asm.StoreMem(asm.R8, 8, asm.R1, asm.Byte),
		load(at.exported, asm.Word),
		asm.StoreMem(asm.R8, 9, asm.R1, asm.Byte),
		asm.Mov.Reg(asm.R1, asm.R8),
		asm.Add.Imm(asm.R1, kallsyms.RecordHead),
	}
}

// copyString copies a string of the symbol to R1.
func copyString(size, off int) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Imm(asm.R2, int32(size)),
		asm.Mov.Reg(asm.R3, asm.R7),
		asm.Add.Imm(asm.R3, int32(off)),
		asm.FnProbeReadKernelStr.Call(),
		asm.JLT.Imm(asm.R0, 1, "exit"),
		asm.JGT.Imm(asm.R0, int32(size), "exit"),
	}
}
