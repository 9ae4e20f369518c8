package runtime

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/kallsyms"
)

// mostAsked is how many functions are asked about one by one: of more, the symbol
// table tells.
const mostAsked = 64

// askSymbols asks the kernel for the symbols of the functions that are needed:
// the table has a hundred thousand lines that the kernel would have to write.
// The answer is false unless each of them is there once, and a user may know.
func (k *Kernel) askSymbols() (*kallsyms.Table, bool) {
	names := k.needs.Functions
	for _, v := range k.needs.Variants {
		if _, err := k.types.AnyTypesByName(v); !errors.Is(err, btf.ErrNotFound) {
			return nil, false
		}
	}
	text := "" // of tracepoints
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

// symbolOnce says whether one symbol of the kernel and its modules has a name. A
// kretprobe that is not at the beginning of a function is refused with EINVAL,
// but before that a name that several have with EADDRNOTAVAIL, and one that none
// has with ENOENT: by all kernels from 6.8 on.
func symbolOnce(name string) bool {
	return errors.Is(openPerfProbe(name, 1, perfReturn), unix.EINVAL)
}

// The kernel's text begins and ends there.
var textBounds = []string{"_stext", "_etext"}

// askText makes lines of a symbol table, of functions that the kernel has each
// once. It is an error if one is not in the kernel's text.
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
	const room = 128 // for a name
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
