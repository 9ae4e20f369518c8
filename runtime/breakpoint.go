package runtime

import (
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
)

// breakpoints are the hardware breakpoints of a probe, a perf event on each CPU. The
// kernel removes them with the process.
type breakpoints struct {
	link.Link
	probe   *compiler.Probe
	program string
	addr    uint64  // of the memory, or 0 for an object that has not been found
	object  uint64  // number of the object that is watched, or 0
	ended   bool    // whether there was an object that has ended
	gone    int     // number of times that Gone has missed a record of the object
	late    bool    // whether the object had ended when its breakpoints were set
	first   uint64  // the bytes that were there before they were set
	early   *Unseen // what had changed before they were all set, until Unseen or WatchObject returns it; or nil
	events  []breakpoint
	counted uint64 // what the events had counted that are closed
}

// breakpoint is the perf event of a breakpoint.
type breakpoint struct {
	*os.File
	cpu int    // or -1
	set uint64 // for how long it had been set when renew looked last, in nanoseconds
}

// Close removes the breakpoints.
func (b *breakpoints) Close() error {
	var errs []error
	for _, e := range b.events {
		errs = append(errs, e.Close())
	}
	b.events = nil
	return errors.Join(errs...)
}

// lastPage is the kernel's last page, which is never used: pointers into it are error
// numbers.
const lastPage = 1<<64 - 4096

// try returns an error if no breakpoint can be set in the kernel's memory, which would
// otherwise show when an object has been found, or if none is ever hit.
func (b *breakpoints) try() error {
	for cpu := range max(b.probe.Features.CPUs, 1) {
		event, err := openBreakpoint(lastPage, b.probe.Watch.Size, -1, cpu)
		if errors.Is(err, unix.ENODEV) {
			continue // the CPU is offline
		}
		if err != nil {
			return err
		}
		if err := event.Close(); err != nil {
			return err
		}
		break
	}
	return tryHit()
}

// tryHit writes to memory of its own, and returns an error if a breakpoint there is not
// hit: some hypervisors let their guests set breakpoints that do nothing.
func tryHit() error {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	memory := new(uint64)
	event, err := openBreakpoint(uint64(uintptr(unsafe.Pointer(memory))), 8, 0, -1)
	if err != nil {
		return err
	}
	own := breakpoints{events: []breakpoint{event}}
	defer own.Close()
	if err := unix.IoctlSetInt(int(event.Fd()), unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
		return err
	}
	atomic.StoreUint64(memory, 1)
	if n, err := own.counts(); err != nil || n > 0 {
		return err
	}
	return errNeverHit
}

var errNeverHit = errors.New("a breakpoint of this machine is never hit, as its hypervisor takes it and does nothing: watch on another machine")

// set sets the breakpoints on all CPUs, or none of them.
func (b *breakpoints) set(prog *ebpf.Program) error {
	for cpu := range max(b.probe.Features.CPUs, 1) {
		if err := b.setOn(cpu, prog); err != nil && !errors.Is(err, unix.ENODEV) { // the CPU is offline
			b.Close()
			return err
		}
	}
	return nil
}

// setOn sets the breakpoint of a CPU.
func (b *breakpoints) setOn(cpu int, prog *ebpf.Program) error {
	event, err := openBreakpoint(b.addr, b.probe.Watch.Size, -1, cpu)
	if err != nil {
		return err
	}
	b.events = append(b.events, event)
	if err := unix.IoctlSetInt(int(event.Fd()), unix.PERF_EVENT_IOC_SET_BPF, prog.FD()); err != nil {
		return err
	}
	return unix.IoctlSetInt(int(event.Fd()), unix.PERF_EVENT_IOC_ENABLE, 0)
}

// renew sets breakpoints on the CPUs that have come online since they were set, and
// returns these. The kernel removes those of a CPU that goes offline, as all but one do
// while the machine sleeps.
func (b *breakpoints) renew(prog *ebpf.Program, online []int) (cpus []int, err error) {
	for _, cpu := range online {
		set, err := b.isSet(cpu)
		if err != nil {
			return cpus, err
		}
		if set {
			continue
		}
		switch err := b.setOn(cpu, prog); {
		case errors.Is(err, unix.ENODEV): // offline again
		case err != nil:
			return cpus, &AttachError{b.probe, compiler.Breakpoint, err}
		default:
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}

// isSet reports whether the breakpoint of a CPU was set at any time since the last call. It
// closes one that was not.
func (b *breakpoints) isSet(cpu int) (bool, error) {
	i := slices.IndexFunc(b.events, func(e breakpoint) bool { return e.cpu == cpu })
	if i < 0 {
		return false, nil
	}
	e := &b.events[i]
	n, set, err := e.read()
	if err != nil || set > e.set {
		e.set = set
		return true, err
	}
	b.counted += n
	err = e.Close()
	b.events = slices.Delete(b.events, i, i+1)
	return false, err
}

// writes is HW_BREAKPOINT_W (include/uapi/linux/hw_breakpoint.h).
const writes = 2

// openBreakpoint makes a breakpoint for writes on a CPU, or of a thread on all CPUs, which
// does nothing yet. The other number is -1.
func openBreakpoint(addr uint64, size, thread, cpu int) (breakpoint, error) {
	attr := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_BREAKPOINT, Bp_type: writes, Sample: 1, Bits: unix.PerfBitDisabled,
		Read_format: unix.PERF_FORMAT_TOTAL_TIME_ENABLED,
		Ext1:        addr, Ext2: uint64(size), // bp_addr, bp_len
	}
	attr.Size = uint32(unsafe.Sizeof(attr))
	fd, err := unix.PerfEventOpen(&attr, thread, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return breakpoint{}, err
	}
	return breakpoint{File: os.NewFile(uintptr(fd), "breakpoint"), cpu: cpu}, nil
}

// read returns how often a breakpoint was hit, and for how long it has been set, in
// nanoseconds.
func (e *breakpoint) read() (n, set uint64, err error) {
	var words [2]uint64
	if _, err := unix.Read(int(e.Fd()), unsafe.Slice((*byte)(unsafe.Pointer(&words)), unsafe.Sizeof(words))); err != nil {
		return 0, 0, fmt.Errorf("read the count of a breakpoint: %w", err)
	}
	return words[0], words[1], nil
}

// breakpointRefusal explains why a breakpoint cannot be set.
func breakpointRefusal(errno unix.Errno) error {
	switch errno {
	case unix.ENOSPC:
		return fmt.Errorf("all hardware breakpoints are in use (error %d), of which each CPU has few, x86 four: watch fewer objects, and end other tools that use them", int(errno))
	case unix.EACCES, unix.EPERM:
		return fmt.Errorf("the kernel does not permit it (error %d): breakpoints in its memory need CAP_SYS_ADMIN", int(errno))
	case unix.EINVAL:
		return fmt.Errorf("the kernel allows no breakpoint there (error %d): it protects some of its own memory", int(errno))
	case unix.EOPNOTSUPP, unix.ENOENT:
		return fmt.Errorf("this machine has no hardware breakpoints (error %d)", int(errno))
	}
	return errno
}

// counts returns how often the hardware has seen a write. Each event is asked on its
// own CPU, so that all programs for the writes before have run.
func (b *breakpoints) counts() (n uint64, err error) {
	n = b.counted
	for _, e := range b.events {
		hits, _, err := e.read()
		if err != nil {
			return 0, err
		}
		n += hits
	}
	return n, nil
}
