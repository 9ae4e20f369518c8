package runtime

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/kallsyms"
)

// mostAsked is the largest number of functions to ask about one by one. For more,
// the symbol table is read.
const mostAsked = 64

// askSymbols asks the kernel for the symbols of the needed functions one by one,
// because the kernel would have to write a hundred thousand lines for the table.
// It returns false unless each symbol exists exactly once, and the user may know. It
// does not ask for variables, as the kernel would log that they are not functions, nor for
// globs, which need the symbols of other functions, too.
func (k *Kernel) askSymbols() (*kallsyms.Table, bool) {
	if len(k.needs.Variables) > 0 || len(k.needs.Globs) > 0 {
		return nil, false
	}
	names := k.needs.Functions
	for _, v := range k.needs.Variants {
		if _, err := k.types.AnyTypesByName(v); !errors.Is(err, btf.ErrNotFound) {
			return nil, false
		}
	}
	text := "" // the symbols of tracepoints
	if len(names) > 0 {
		if v, _, err := release(); err != nil || !v.atLeast(6, 8) || len(names) > mostAsked {
			return nil, false
		}
		if slices.ContainsFunc(names, func(name string) bool { return !symbolOnce(name) }) {
			return nil, false
		}
		var err error
		if text, err = askText(names); err != nil {
			return nil, false
		}
	}
	table, err := kallsyms.Read(strings.NewReader(text), nil)
	return table, err == nil
}

// symbolOnce reports whether exactly one symbol of the kernel and its modules has this
// name. The kernel refuses a kretprobe that is not at the beginning of a function
// with EINVAL, but before that a name that several symbols have with EADDRNOTAVAIL,
// and a name that no symbol has with ENOENT: all kernels from 6.8 on.
func symbolOnce(name string) bool {
	return errors.Is(openPerfProbe(name, 1, perfReturn), unix.EINVAL)
}

// textBounds are the symbols at the beginning and the end of the kernel's text.
var textBounds = []string{"_stext", "_etext"}

// askText returns lines of a symbol table for functions that the kernel has once
// each. It returns an error if one is not in the kernel's text.
func askText(names []string) (string, error) {
	addrs, err := lookUp(append(textBounds[:2:2], names...))
	if err != nil {
		return "", err
	}
	var text strings.Builder
	from, to := addrs[0], addrs[1]
	for i, addr := range addrs[2:] {
		if addr < from || addr >= to {
			return "", fmt.Errorf("%s is not in the kernel's text", names[i])
		}
		fmt.Fprintf(&text, "%x t %s\n", addr, names[i])
	}
	return text.String(), nil
}

// lookUp finds the addresses of symbols by a program that asks for them
// (bpf_kallsyms_lookup_name, 5.16). It needs CAP_SYSLOG, too.
func lookUp(names []string) ([]uint64, error) {
	const room = 128 // bytes for a name
	entry := 8 + room
	block := make([]byte, entry*len(names))
	for i, name := range names {
		if len(name) >= room {
			return nil, os.ErrNotExist
		}
		copy(block[entry*i+8:], name)
	}
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: uint32(len(block)), MaxEntries: 1})
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if err := m.Put(uint32(0), block); err != nil {
		return nil, err
	}
	if err := runLookUp(m, len(names), entry); err != nil {
		return nil, err
	}
	if err := m.Lookup(uint32(0), &block); err != nil {
		return nil, err
	}
	addrs := make([]uint64, len(names))
	for i := range addrs {
		addrs[i] = binary.NativeEndian.Uint64(block[entry*i:])
	}
	return addrs, nil
}

func runLookUp(m *ebpf.Map, n, entry int) error {
	var insns asm.Instructions
	for i := range n {
		insns = append(insns,
			asm.LoadMapValue(asm.R1, m.FD(), uint32(entry*i+8)),
			asm.Mov.Imm(asm.R2, int32(entry-8)),
			asm.Mov.Imm(asm.R3, 0),
			asm.LoadMapValue(asm.R4, m.FD(), uint32(entry*i)),
			asm.FnKallsymsLookupName.Call(),
		)
	}
	prog, err := ebpf.NewProgramWithOptions(&ebpf.ProgramSpec{
		Name: "lookup", Type: ebpf.Syscall, License: "Dual MIT/GPL", Flags: unix.BPF_F_SLEEPABLE,
		Instructions: append(insns, asm.Mov.Imm(asm.R0, 0), asm.Return()),
	}, ebpf.ProgramOptions{LogDisabled: true})
	if err != nil {
		return err
	}
	defer prog.Close()
	_, err = prog.Run(&ebpf.RunOptions{})
	return err
}

// iterateSymbols reads the symbol table by a program that the kernel calls with
// each symbol (bpf_iter__ksym, Linux 6.0). For a few symbols this takes a third of
// the time of /proc/kallsyms, where the kernel formats all of them, and for all
// symbols two thirds. Addresses are hidden from the same users.
func (k *Kernel) iterateSymbols(want kallsyms.Wanted) (*kallsyms.Table, error) {
	at, err := findSymbolMembers(k.types)
	if err != nil {
		return nil, err
	}
	chosen := chooseNames(want)
	maps := map[string]*ebpf.MapSpec{"record": {
		Name: "record", Type: ebpf.Array, KeySize: 4, ValueSize: kallsyms.RecordHead + uint32(at.nameSize+at.moduleSize), MaxEntries: 1,
	}}
	if chosen.hashes != nil {
		maps["hashes"] = &ebpf.MapSpec{
			Name: "hashes", Type: ebpf.Array, KeySize: 4, ValueSize: uint32(8 * len(chosen.hashes)), MaxEntries: 1,
			Contents: []ebpf.MapKV{{Key: uint32(0), Value: chosen.hashes}},
		}
	}
	coll, err := k.load(&ebpf.CollectionSpec{
		Maps: maps,
		Programs: map[string]*ebpf.ProgramSpec{"symbols": {
			Name: "symbols", Type: ebpf.Tracing, AttachType: ebpf.AttachTraceIter, AttachTo: "ksym",
			License: "Dual MIT/GPL", Instructions: at.iterator(chosen),
		}},
	})
	if err != nil {
		return nil, err
	}
	defer coll.Close()
	return iterate(link.IterOptions{Program: coll.Programs["symbols"]}, func(r io.Reader) (*kallsyms.Table, error) {
		return kallsyms.ReadRecords(r, want.Keep)
	})
}

// symbolMembers holds the offsets and sizes of members of struct kallsym_iter.
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

// choice is how the program chooses names, by their first eight bytes. The zero value
// takes all.
type choice struct {
	short  []prefix // of less than eight bytes
	hashes []uint64 // a bit for each hash of the first eight bytes of longer prefixes, or nil
}

// prefix is less than eight bytes of a name, with a mask of the bytes that count.
type prefix struct{ bytes, mask uint64 }

// hashBits is the size of a hash. Of 2,000 functions, 3 % of all other names have the hash
// of one.
const hashBits = 16

// hashFactor is odd, and spreads eight bytes over the upper bits of the product.
const hashFactor = 0x9e3779b97f4a7c15

// mostShort is the largest number of short prefixes that the program compares each name
// with: comparing more takes longer than writing the name.
const mostShort = 64

// chooseNames returns the choice of the wanted names, and some others. One of them is that of
// a symbol that always exists, which shows whether addresses are hidden.
func chooseNames(want kallsyms.Wanted) (c choice) {
	if want.Prefixes == nil {
		return choice{}
	}
	for _, name := range append([]string{textSymbol}, want.Prefixes...) {
		var b, mask [8]byte
		for i := range copy(b[:], name) {
			mask[i] = 0xff
		}
		p := prefix{binary.NativeEndian.Uint64(b[:]), binary.NativeEndian.Uint64(mask[:])}
		switch {
		case len(name) >= len(b):
			if c.hashes == nil {
				c.hashes = make([]uint64, 1<<hashBits/64)
			}
			hash := p.bytes * hashFactor >> (64 - hashBits)
			c.hashes[hash/64] |= 1 << (hash % 64)
		case !slices.Contains(c.short, p):
			c.short = append(c.short, p)
		}
	}
	if len(c.short) > mostShort {
		return choice{}
	}
	return c
}

// choose exits the program unless the name is of the choice.
func (at symbolMembers) choose(c choice) (insns asm.Instructions) {
	if len(c.short) == 0 {
		return nil
	}
	insns = append(insns, asm.LoadMem(asm.R1, asm.R7, int16(at.name), asm.DWord))
	for _, p := range c.short {
		insns = append(insns,
			asm.LoadImm(asm.R2, int64(p.mask), asm.DWord),
			asm.And.Reg(asm.R2, asm.R1),
			asm.LoadImm(asm.R3, int64(p.bytes), asm.DWord),
			asm.JEq.Reg(asm.R2, asm.R3, "wanted"),
		)
	}
	if c.hashes != nil {
		factor := uint64(hashFactor)
		insns = append(insns,
			asm.LoadImm(asm.R2, int64(factor), asm.DWord),
			asm.Mul.Reg(asm.R1, asm.R2),
			asm.RSh.Imm(asm.R1, 64-hashBits),
			asm.Mov.Reg(asm.R2, asm.R1),
			asm.RSh.Imm(asm.R2, 6),
			asm.LSh.Imm(asm.R2, 3),
			asm.LoadMapValue(asm.R3, 0, 0).WithReference("hashes"),
			asm.Add.Reg(asm.R3, asm.R2),
			asm.LoadMem(asm.R3, asm.R3, 0, asm.DWord),
			asm.And.Imm(asm.R1, 63),
			asm.RSh.Reg(asm.R3, asm.R1),
			asm.And.Imm(asm.R3, 1),
			asm.JNE.Imm(asm.R3, 0, "wanted"),
		)
	}
	return append(insns, asm.Ja.Label("exit"))
}

// iterator returns a program that writes the record of each symbol whose name is of the
// choice. Its checks of sizes are for the verifier, and always
// hold.
func (at symbolMembers) iterator(c choice) asm.Instructions {
	var insns asm.Instructions
	for _, part := range []asm.Instructions{
		iterObject(),
		at.choose(c),
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
			asm.Mov.Reg(asm.R2, asm.R8),
			asm.Mov.Reg(asm.R3, asm.R9),
			asm.Add.Reg(asm.R3, asm.R0),
			asm.Add.Imm(asm.R3, kallsyms.RecordHead),
		},
		iterWrite(),
	} {
		insns = append(insns, part...)
	}
	return insns
}

// head writes the part of the record before the names, and leaves their address in
// R1.
func (at symbolMembers) head() asm.Instructions {
	load := func(off int, size asm.Size) asm.Instruction { return asm.LoadMem(asm.R1, asm.R7, int16(off), size) }
	return asm.Instructions{
		asm.LoadMapValue(asm.R8, 0, 0).WithReference("record").WithSymbol("wanted"),
		load(at.shown, asm.Word),
		asm.JEq.Imm(asm.R1, 0, "hidden"),
		load(at.value, asm.DWord),
		asm.StoreMem(asm.R8, 0, asm.R1, asm.DWord).WithSymbol("hidden"), // zero unless addresses are shown
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

// iterObject loads the object of an iterator, of which there is none in the last call,
// to R7, and the file that the iterator writes to, to R6.
func iterObject() asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R7, asm.R1, 8, asm.DWord),
		asm.JEq.Imm(asm.R7, 0, "exit"),
		asm.LoadMem(asm.R1, asm.R1, 0, asm.DWord), // ctx->meta
		asm.LoadMem(asm.R6, asm.R1, 0, asm.DWord), // ctx->meta->seq
	}
}

// iterWrite writes R3 bytes from R2 on to the file of iterObject, and exits.
func iterWrite() asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.FnSeqWrite.Call(),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("exit"),
		asm.Return(),
	}
}

// iterate runs an iterator, and returns what read decodes from its output.
func iterate[T any](o link.IterOptions, read func(io.Reader) (T, error)) (got T, err error) {
	iter, err := link.AttachIter(o)
	if err != nil {
		return got, err
	}
	defer iter.Close()
	r, err := iter.Open()
	if err != nil {
		return got, err
	}
	defer r.Close()
	return read(r)
}
