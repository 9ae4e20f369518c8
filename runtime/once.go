package runtime

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
)

// ErrNotRun is returned by [Session.ReadOnce] if the kernel has not run the program:
// it was interrupted by another run of it.
var ErrNotRun = errors.New("the kernel did not run the program: try again")

// ReadOnce runs the program of a probe of [spec.ParseValues] at once, and decodes its
// record into ev, whose former content becomes invalid. Per-CPU variables are read as
// those of the CPU. Nothing is attached for this, so that it also works where no probe
// can be. No other goroutine may read.
func (s *Session) ReadOnce(p *compiler.Probe, cpu int, ev *Event) error {
	for _, at := range s.unit.Attachments {
		if at.Kind != compiler.RawTP || at.Places[0].Probe != p {
			continue
		}
		if _, err := testRun(s.coll.Programs[at.Program].FD(), uint64(cpu)); err != nil {
			return fmt.Errorf("read %s: %w", p.Func.Name, err)
		}
		if s.Idle() {
			return ErrNotRun
		}
		return s.Read(ev)
	}
	return fmt.Errorf("read %s: it has no program", p.Func.Name)
}

// progTestRun is union bpf_attr for BPF_PROG_TEST_RUN (include/uapi/linux/bpf.h), up
// to the members of 5.10.
type progTestRun struct {
	fd, result               uint32
	dataSize, dataOutSize    uint32
	data, dataOut            uint64
	repeat, duration         uint32
	contextSize, contextRoom uint32
	context, contextOut      uint64
	flags, cpu               uint32
}

// testRun runs a raw_tp program with some words of context on this CPU, and returns its
// result. Package ebpf makes buffers that programs of this type have no use for.
func testRun(fd int, context ...uint64) (result uint32, err error) {
	attr := progTestRun{fd: uint32(fd), contextSize: uint32(8 * len(context)), context: uint64(uintptr(unsafe.Pointer(&context[0])))}
	for {
		_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_TEST_RUN, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
		goruntime.KeepAlive(context)
		switch errno {
		case 0:
			return attr.result, nil
		case unix.EINTR, unix.EAGAIN:
			continue
		}
		return 0, fmt.Errorf("run the program: %w", errno)
	}
}

// Without reports whether the verifier has refused the program of a probe, so that the
// session is without it.
func (s *Session) Without(p *compiler.Probe) bool {
	for _, refused := range s.refused {
		if slices.Contains(refused.Probes, p) {
			return true
		}
	}
	return false
}
