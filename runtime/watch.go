package runtime

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime/clock"
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
	events  []*os.File
	counted uint64 // what the events had counted when they were closed
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

// attachBreakpoints finds the memory that a probe watches, and sets the breakpoints.
func (s *Session) attachBreakpoints(program string, p *compiler.Probe) (link.Link, error) {
	b := &breakpoints{probe: p, program: program}
	if err := b.try(); err != nil || p.Watch.Finder != nil {
		return b, err
	}
	addr, err := s.locate(p.Watch)
	if err != nil {
		return nil, err
	}
	return b, s.watchAt(b, addr)
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
	own := breakpoints{events: []*os.File{event}}
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

// locate returns the address of the memory to watch.
func (s *Session) locate(w *compiler.Watch) (uint64, error) {
	addr, last := w.Addr, len(w.Path)-1
	for _, a := range w.Path[:last] {
		var err error
		if addr, err = s.peek(addr+uint64(a.Off), 8); err != nil {
			return 0, fmt.Errorf("find what to watch: %w", err)
		}
	}
	return addr + uint64(w.Path[last].Off), nil
}

// peek reads size bytes of kernel memory.
func (s *Session) peek(addr uint64, size int) (uint64, error) {
	at := len(s.unit.Watched()) * compiler.WatchedSize
	m := s.watched.word
	atomic.StoreUint64(m(at+compiler.PeekAddr), addr)
	atomic.StoreUint64(m(at+compiler.PeekSize), uint64(size))
	if _, err := testRun(s.coll.Programs[compiler.PeekProgram].FD(), 0); err != nil {
		return 0, fmt.Errorf("read %#x: %w", addr, err)
	}
	if errno := atomic.LoadUint64(m(at + compiler.PeekError)); errno != 0 {
		return 0, fmt.Errorf("there is no readable memory at %#x", addr)
	}
	return atomic.LoadUint64(m(at + compiler.PeekData)), nil
}

// watchAt sets breakpoints at an address. What changes there after the first read and
// before all of them are set is kept in early.
func (s *Session) watchAt(b *breakpoints, addr uint64) (err error) {
	if err = s.beginAt(b, addr); err != nil {
		return err
	}
	if err = b.set(s.coll.Programs[b.program]); err != nil {
		return err
	}
	if b.early, err = s.unseenBy(b); err != nil {
		b.Close()
	}
	return err
}

// beginAt stores the address of breakpoints and the bytes there, also for their program.
func (s *Session) beginAt(b *breakpoints, addr uint64) (err error) {
	w := b.probe.Watch
	if b.first, err = s.peek(addr, w.Size); err != nil {
		return err
	}
	b.addr = addr
	slot := w.Slot * compiler.WatchedSize
	atomic.StoreUint64(s.watched.word(slot+compiler.WatchedLast), b.first)
	atomic.StoreUint64(s.watched.word(slot+compiler.WatchedAddr), addr)
	return nil
}

// set sets the breakpoints on all CPUs, or none of them.
func (b *breakpoints) set(prog *ebpf.Program) (err error) {
	defer func() {
		if err != nil {
			b.Close()
		}
	}()
	for cpu := range max(b.probe.Features.CPUs, 1) {
		event, err := openBreakpoint(b.addr, b.probe.Watch.Size, -1, cpu)
		if errors.Is(err, unix.ENODEV) {
			continue // the CPU is offline
		}
		if err != nil {
			return err
		}
		b.events = append(b.events, event)
		fd := int(event.Fd())
		if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, prog.FD()); err != nil {
			return err
		}
		if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
			return err
		}
	}
	return nil
}

// writes is HW_BREAKPOINT_W (include/uapi/linux/hw_breakpoint.h).
const writes = 2

// openBreakpoint makes a breakpoint for writes on a CPU, or of a thread on all CPUs, which
// does nothing yet. The other number is -1.
func openBreakpoint(addr uint64, size, thread, cpu int) (*os.File, error) {
	attr := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_BREAKPOINT, Bp_type: writes, Sample: 1, Bits: unix.PerfBitDisabled,
		Ext1: addr, Ext2: uint64(size), // bp_addr, bp_len
	}
	attr.Size = uint32(unsafe.Sizeof(attr))
	fd, err := unix.PerfEventOpen(&attr, thread, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "breakpoint"), nil
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
		var word [8]byte
		if _, err := unix.Read(int(e.Fd()), word[:]); err != nil {
			return 0, fmt.Errorf("read the count of a breakpoint: %w", err)
		}
		n += binary.NativeEndian.Uint64(word[:])
	}
	return n, nil
}

// missedWrites returns how many writes the hardware has seen without the program: those
// of BPF programs and of bpf(2), during which the kernel runs no other.
func (s *Session) missedWrites(at *attached) (uint64, error) {
	b, ok := at.link.(*breakpoints)
	if !ok {
		return 0, nil
	}
	n, err := b.counts()
	if err != nil {
		return 0, err
	}
	ran := atomic.LoadUint64(s.watched.word(b.probe.Watch.Slot*compiler.WatchedSize + compiler.WatchedHits))
	return n - min(n, ran), nil
}

// Unseen is a change of watched memory without a write that a breakpoint has seen.
type Unseen struct {
	Time        time.Duration // CLOCK_MONOTONIC, when it was found
	Probe       *compiler.Probe
	Addr        uint64
	Before, Now Value // as it was seen last, and as it is
}

// Unseen returns the changes that no breakpoint has seen since the last call: by
// devices, in non-maskable interrupts, through another mapping, or before the
// breakpoint was set.
func (s *Session) Unseen() (all []Unseen, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watched == nil || s.closed {
		return nil, nil
	}
	for _, at := range s.attached {
		b, ok := at.link.(*breakpoints)
		if !ok || len(b.events) == 0 {
			continue
		}
		since, err := s.unseenBy(b)
		if gone := s.checkVariables(b.probe); gone != nil {
			return all, gone // since may be of other memory
		}
		if err != nil {
			return all, err
		}
		for _, u := range []*Unseen{b.early, since} {
			if u != nil {
				all = append(all, *u)
			}
		}
		b.early = nil
	}
	return all, nil
}

// unseenBy compares watched memory with what its program has seen last. A write
// between the two reads shows in the hits, once its CPU has run the program. Where the
// program runs before the write, what follows the first hit is not known.
func (s *Session) unseenBy(b *breakpoints) (*Unseen, error) {
	w := b.probe.Watch
	slot := w.Slot * compiler.WatchedSize
	addr := atomic.LoadUint64(s.watched.word(slot + compiler.WatchedAddr))
	hits := atomic.LoadUint64(s.watched.word(slot + compiler.WatchedHits))
	if w.New == nil && hits > 0 {
		return nil, nil
	}
	before, err := s.peek(addr, w.Size)
	if err != nil {
		return nil, nil // the memory has gone
	}
	if _, err := b.counts(); err != nil {
		return nil, err
	}
	now, err := s.peek(addr, w.Size)
	if err != nil {
		return nil, nil
	}
	last := s.watched.word(slot + compiler.WatchedLast)
	seen := atomic.LoadUint64(last)
	switch {
	case !s.lives(b): // this may be another object's memory
		return nil, nil
	case before != now, now == seen, hits != atomic.LoadUint64(s.watched.word(slot+compiler.WatchedHits)):
		return nil, nil
	case !atomic.CompareAndSwapUint64(last, seen, now):
		return nil, nil
	}
	return &Unseen{Time: clock.Now(), Probe: b.probe, Addr: addr, Before: stateOf(w.Old, seen), Now: stateOf(w.Old, now)}, nil
}

// stateOf returns the value that the bytes of watched memory mean.
func stateOf(v *compiler.Value, bytes uint64) Value {
	if s := v.Load; s != nil {
		up := 64 - s.Shift - s.Width()
		if s.Signed {
			bytes = uint64(int64(bytes<<up) >> (64 - s.Width()))
		} else {
			bytes = bytes << up >> (64 - s.Width())
		}
		for _, c := range v.Casts {
			bytes = converted(bytes, c)
		}
	}
	size := 8
	if v.Scalar != nil {
		size = v.Scalar.Size
	} else if n := len(v.Path); n > 0 {
		size = v.Path[n-1].Size
	}
	return Value{Value: v, Data: binary.LittleEndian.AppendUint64(nil, bytes)[:size], Full: size}
}

// converted returns a number as a cast makes it.
func converted(n uint64, c compiler.Scalar) uint64 {
	up := 64 - c.Width()
	switch {
	case c.Bool && n != 0:
		return 1
	case c.Signed:
		return uint64(int64(n<<up) >> up)
	}
	return n << up >> up
}
