package runtime

import (
	"fmt"
	goruntime "runtime"
	"sync"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/kallsyms"
)

// Finder returns a finder of the symbols at addresses, and of those of the functions that
// [Kernel.Target] was last asked for. The finder asks the kernel if that is possible (from
// 5.13 on, with CAP_BPF and CAP_PERFMON), because reading the symbol table takes 0.1 s and
// 17 MB. Otherwise Finder reads the table, and returns an error if that has no addresses.
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
	ask   *asker
	known map[uint64]foundPlace // what was asked, by address
}

type foundPlace struct {
	kallsyms.Place
	ok bool
}

// mostKnown is the largest number of places that are remembered. There may be any number
// of stacks and pointers, but most lead to the same few places.
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
		p.Place, p.ok = kallsyms.ParsePlace(f.place(addr), addr)
		f.known[addr] = p
	}
	return p
}

// placeRoom is more bytes than the kernel prints: KSYM_NAME_LEN is 512 (6.1),
// MODULE_NAME_LEN 56.
const placeRoom = 1024

// newPlaceAsker loads the program that asks for the symbol at an address, or returns nil if
// the kernel does not permit it.
func newPlaceAsker() *asker {
	format, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1, Flags: unix.BPF_F_RDONLY_PROG})
	if err != nil {
		return nil
	}
	defer format.Close() // the program holds it
	if format.Put(uint32(0), []byte("%pS\x00")) != nil || format.Freeze() != nil {
		return nil
	}
	return newAsker("place", placeRoom, func(answer *ebpf.Map) asm.Instructions {
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
}

// place returns the text for an address, or "" if the kernel did not run the program.
func (f *finder) place(addr uint64) string {
	if n, err := f.ask.run(addr); err != nil || int32(n) <= 0 {
		return ""
	}
	return string(untilNUL(f.ask.answer))
}

// asker runs a program that asks the kernel something, without attaching anything. The
// program leaves its answer in memory that is mapped here.
type asker struct {
	prog   *ebpf.Program
	answer []byte // is overwritten by the next run
	unmap  goruntime.Cleanup
}

// newAsker loads the program that instructions returns, which writes at most size bytes
// into the one value of a map. It returns nil if the kernel does not permit it.
func newAsker(name string, size uint32, instructions func(answer *ebpf.Map) asm.Instructions) *asker {
	room, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: size, MaxEntries: 1, Flags: unix.BPF_F_MMAPABLE})
	if err != nil {
		return nil
	}
	defer room.Close() // the program and the mapping hold it
	prog, err := loadProgram(&ebpf.ProgramSpec{
		Name: name, Type: ebpf.RawTracepoint, License: "Dual MIT/GPL", Instructions: instructions(room),
	}, 0, nil)
	if err != nil {
		return nil
	}
	answer, err := unix.Mmap(room.FD(), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		prog.Close()
		return nil
	}
	a := &asker{prog: prog, answer: answer}
	a.unmap = goruntime.AddCleanup(a, func(answer []byte) { _ = unix.Munmap(answer) }, answer)
	return a
}

// run runs the program with some words of context, and returns its result.
func (a *asker) run(context ...uint64) (uint32, error) {
	defer goruntime.KeepAlive(a)
	return testRun(a.prog.FD(), context...)
}

func (a *asker) close() {
	a.unmap.Stop()
	_ = unix.Munmap(a.answer)
	a.prog.Close()
}

// progTestRun is union bpf_attr for BPF_PROG_TEST_RUN (include/uapi/linux/bpf.h), up
// to the members of 5.10.
type progTestRun struct {
	fd, result               uint32
	dataSize, dataOutSize    uint32
	data, dataOut            uint64
	repeat, duration         uint32
	contextSize, contextRoom uint32
	context                  unsafe.Pointer // so that it follows a stack that moves
	contextOut               uint64
	flags, cpu               uint32
}

// testRun runs a raw_tp program with some words of context on this CPU, and returns its
// result. Package ebpf makes buffers that programs of this type have no use for.
func testRun(fd int, context ...uint64) (result uint32, err error) {
	attr := progTestRun{fd: uint32(fd), contextSize: uint32(8 * len(context)), context: unsafe.Pointer(&context[0])}
	for {
		_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_TEST_RUN, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
		switch errno {
		case 0:
			return attr.result, nil
		case unix.EINTR, unix.EAGAIN:
			continue
		}
		return 0, fmt.Errorf("run the program: %w", errno)
	}
}
