package runtime

import (
	"fmt"
	goruntime "runtime"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

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
