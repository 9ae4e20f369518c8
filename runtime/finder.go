package runtime

import (
	"bytes"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/kallsyms"
)

// Finder finds the symbols at addresses, and those of the functions that
// [Kernel.Target] was last asked for. It asks the kernel if that is possible (from 5.13
// on, with CAP_BPF and CAP_PERFMON), because reading its symbol table takes 0.1 s and 17
// MB. Otherwise it reads the table, and returns an error if that has no addresses.
func (k *Kernel) Finder() (kallsyms.Finder, error) { return k.finder() }

func (k *Kernel) openFinder() (kallsyms.Finder, error) {
	if k.targeted != nil && !k.targetedAll {
		if a := newPlaceAsker(); a != nil {
			return &finder{kernel: k, ask: a, known: map[uint64]foundPlace{}}, nil
		}
	}
	table, err := k.Symbols()
	if err != nil {
		return nil, err
	}
	return table.Finder()
}

// finder is a [kallsyms.Finder] that asks the running kernel.
type finder struct {
	kernel *Kernel

	mu    sync.Mutex
	ask   *placeAsker
	known map[uint64]foundPlace // what was asked, by address
}

type foundPlace struct {
	kallsyms.Place
	ok bool
}

// mostKnown is the largest number of places that are remembered: of stacks and pointers
// there may be any number, but most are to the same few.
const mostKnown = 1 << 14

// Lookup returns the symbols of a traced function.
func (f *finder) Lookup(name string) []kallsyms.Symbol { return f.kernel.targeted.Lookup(name) }

// At returns the symbol that contains an address, and the offset in it.
func (f *finder) At(addr uint64) (s kallsyms.Symbol, offset uint64, ok bool) {
	p := f.find(addr)
	return p.Symbol, p.Offset, p.ok
}

// Size returns the size of a symbol.
func (f *finder) Size(s kallsyms.Symbol) uint64 { return f.find(s.Addr).Size }

func (f *finder) find(addr uint64) foundPlace {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, ok := f.known[addr]
	if !ok {
		if len(f.known) == mostKnown {
			clear(f.known)
		}
		p.Place, p.ok = kallsyms.ParsePlace(f.ask.place(addr), addr)
		f.known[addr] = p
	}
	return p
}

// placeRoom is more than the kernel prints: KSYM_NAME_LEN is 512 (6.1), MODULE_NAME_LEN
// 56.
const placeRoom = 1024

// placeAsker asks for the symbol at an address.
type placeAsker struct{ *asker }

// newPlaceAsker returns nil if the kernel does not permit it.
func newPlaceAsker() *placeAsker {
	format, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1, Flags: unix.BPF_F_RDONLY_PROG})
	if err != nil {
		return nil
	}
	defer format.Close() // the program holds it
	if format.Put(uint32(0), []byte("%pS\x00")) != nil || format.Freeze() != nil {
		return nil
	}
	a := newAsker("place", placeRoom, func(answer *ebpf.Map) asm.Instructions {
		return asm.Instructions{
			asm.LoadMem(asm.R1, asm.R1, 0, asm.DWord),
			asm.StoreMem(asm.R10, -8, asm.R1, asm.DWord),
			asm.LoadMapValue(asm.R1, answer.FD(), 0),
			asm.Mov.Imm(asm.R2, placeRoom),
			asm.LoadMapValue(asm.R3, format.FD(), 0),
			asm.Mov.Reg(asm.R4, asm.R10),
			asm.Add.Imm(asm.R4, -8),
			asm.Mov.Imm(asm.R5, 8),
			asm.FnSnprintf.Call(),
			asm.Return(),
		}
	})
	if a == nil {
		return nil
	}
	return &placeAsker{a}
}

// place returns the text for an address, or "" if the kernel did not run the program.
func (a *placeAsker) place(addr uint64) string {
	if n, err := a.run(addr); err != nil || int32(n) <= 0 {
		return ""
	}
	text, _, _ := bytes.Cut(a.answer, []byte{0})
	return string(text)
}
