package runtime

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf/link"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime/clock"
)

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
	online, _ := OnlineCPUs() // as before, if it is not known
	for _, at := range s.attached {
		b, ok := at.link.(*breakpoints)
		if !ok || len(b.events) == 0 {
			continue
		}
		if err := s.renew(b, online); err != nil {
			return all, err
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

// renew sets breakpoints on the CPUs that have come online, which it remembers.
func (s *Session) renew(b *breakpoints, online []int) error {
	if !s.lives(b) {
		return nil
	}
	cpus, err := b.renew(s.coll.Programs[b.program], online)
	for _, cpu := range cpus {
		if !slices.Contains(s.rejoined, cpu) {
			s.rejoined = append(s.rejoined, cpu)
		}
	}
	return err
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
