package runtime

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
)

// SessionCounts has all counts of a session: what happened to its calls.
type SessionCounts struct {
	Events []Counts // one for each event type of the unit
	Missed []Missed
	// Unfollowed counts the processes of the process tree that are not traced.
	Unfollowed uint64
	// Objects counts the objects that were followed until [Session.Stop].
	Objects uint64
}

// Counts returns what has been counted so far.
func (s *Session) Counts() (c SessionCounts, err error) {
	if c.Events, err = s.EventCounts(); err != nil {
		return c, err
	}
	if c.Missed, err = s.Missed(); err != nil {
		return c, err
	}
	c.Objects = s.followed.Load()
	c.Unfollowed, err = s.Unfollowed()
	return c, err
}

// Lost returns the number of calls, events and processes that should have been
// shown but were not, because there was no room, the kernel skipped them, or a
// value in a condition could not be read. It does not know of events beyond
// [compiler.Options].Rate and of those that were left in the ring buffer (Limited and Unread in
// Events), nor of what a table had no room for or could not read (its Full and Faulted).
func (c SessionCounts) Lost() uint64 {
	n := c.Unfollowed
	for _, t := range c.Events {
		n += t.Lost + t.NoRoom + t.Unreadable + t.Unpaired
	}
	for _, m := range MissedOnce(c.Missed) {
		n += m.N
	}
	return n
}

// Counts has what was counted of the calls for one event type, as far as programs
// saw them. If the unit was compiled with [compiler.Options].CountCalls, Matched =
// Delivered + Unread + Lost + Limited once the session has been stopped and read to the end.
type Counts struct {
	*compiler.EventType
	compiler.Counters
	Delivered uint64 // records read
	Unread    uint64 // records discarded, see [Session.Discard]
}

// EventCounts returns what has been counted so far for each event type of the unit,
// summed over the CPUs. It makes no system call, so that no program misses a call
// because of it.
func (s *Session) EventCounts() ([]Counts, error) {
	all := make([]Counts, len(s.unit.Events))
	err := s.counters.use(func(load func(off int) uint64) {
		for i, ev := range s.unit.Events {
			all[i] = Counts{EventType: ev, Counters: s.unit.Counters.Read(ev, load), Delivered: s.delivered[i].Load(), Unread: s.unread[i].Load()}
		}
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Missed counts the calls for which the kernel did not run a program.
type Missed struct {
	Kind compiler.Kind
	// Probes are the probes that share the program. Which of their functions
	// were called is not known.
	Probes []*compiler.Probe
	N      uint64
	// Uncounted reports that N means nothing: this kernel does not count misses (kprobes
	// before 6.7), or tracing had ended before the session was stopped, see
	// [Session.Interrupted].
	Uncounted bool
}

// Missed returns what each program missed from its attachment until
// [Session.Close]. Calls are missed when a program runs on the CPU already
// (recursion_misses of bpf_prog_info), and when the kernel has no room for one
// more call whose return it must catch (missed of bpf_link_info).
func (s *Session) Missed() ([]Missed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Missed
	programs := map[string]int{} // index in all
	counted := s.kernel.CountsMissed()
	var ended interruption
	if s.stopped.Load() { // to ask may call functions that are traced
		ended = s.interruption()
	}
	for _, at := range s.attached {
		m, err := missedBy(at, counted)
		if err != nil {
			return nil, fmt.Errorf("read what %s missed: %w", at.Program, err)
		}
		m.Uncounted = m.Uncounted || ended.concerns(at)
		i, shared := programs[at.Program]
		if !shared {
			i = len(all)
			programs[at.Program] = i
			all = append(all, Missed{Kind: at.Kind})
			n, err := s.programMissed(at.Program)
			if err != nil {
				return nil, err
			}
			if at.Kind == compiler.KprobeSession && !at.Places[0].Probe.Features.ReturnsUnlimited {
				// Before 6.14 the kernel follows the return of a call that it skips at
				// entry, skips that, too, and counts both.
				n = (n + 1) / 2
			}
			m.N += n
			if at.Kind == compiler.Breakpoint {
				n, err := s.missedWrites(at)
				if err != nil {
					return nil, err
				}
				m.N += n
			}
		}
		all[i].add(m, at.Places)
	}
	return all, nil
}

// MissedOnce returns what programs missed, where each call counts once. Kprobes skip both
// sides of a call, and the counts of both programs have it, so the one at return is left
// with what it alone missed. Of a call in an interrupt, fentry and fexit skip one side.
// If a task is preempted inside bpf(2), kprobes may skip one side alone. Of such calls
// those of one program may be left out; but the side that ran counts as unpaired.
func MissedOnce(all []Missed) []Missed {
	all = slices.Clone(all)
	for i := range all {
		switch m := &all[i]; m.Kind {
		case compiler.Kretprobe:
			m.N -= min(m.N, missedAtEntry(all, m, compiler.Kprobe))
		case compiler.KretprobeMulti:
			m.N -= min(m.N, missedAtEntry(all, m, compiler.KprobeMulti))
		}
	}
	return all
}

func missedAtEntry(all []Missed, ret *Missed, entry compiler.Kind) (n uint64) {
	for _, m := range all {
		if m.Kind == entry && slices.Equal(m.Probes, ret.Probes) {
			n += m.N
		}
	}
	return n
}

func (m *Missed) add(n Missed, places []compiler.Place) {
	m.N += n.N
	m.Uncounted = m.Uncounted || n.Uncounted
	for _, p := range places {
		if !slices.Contains(m.Probes, p.Probe) {
			m.Probes = append(m.Probes, p.Probe)
		}
	}
}

// CountsMissed reports whether the kernel counts the misses of links: missed of
// bpf_link_info (6.7), which links of kprobes got together with those of kprobe.multi.
func (k *Kernel) CountsMissed() bool {
	var info *btf.Struct
	if k.types.TypeByName("bpf_link_info", &info) != nil {
		return false
	}
	multi, ok := compiler.FindMember(info, "kprobe_multi")
	if ok {
		_, ok = compiler.FindMember(multi.Member.Type, "missed")
	}
	return ok
}

// missedBy returns the calls that a link missed, besides those that its program
// counts. counted reports whether the kernel counts the misses of links.
func missedBy(at *attached, counted bool) (m Missed, err error) {
	probe := at.Kind.Multi() || at.Kind == compiler.Kprobe || at.Kind == compiler.Kretprobe
	switch {
	case at.Kind == compiler.Breakpoint:
		// See missedWrites.
	case !probe:
		// The program counts its misses. Before 5.12 programs do not count, but
		// there trampolines skip nothing: they have no guard against recursion
		// (ca06f55b9002).
	case counted:
		m.N, err = linkMissed(at.link)
	case at.group != "":
		m.N, err = profileMissed(at.group)
	default:
		m.Uncounted = true
	}
	return m, err
}

// linkMissed returns missed of struct bpf_link_info (include/uapi/linux/bpf.h, 6.7).
func linkMissed(l link.Link) (uint64, error) {
	var info struct {
		kind  link.Type
		_     [3]uint32
		event uint32 // enum bpf_perf_event_type, of a perf event
		_     [3]uint32
		multi uint64
		_     uint64
		perf  uint64
		_     uint64
	}
	const kprobe, kretprobe = 3, 4
	if described, ok := l.(interface{ FD() int }); ok {
		if err := objectInfo(described.FD(), unsafe.Pointer(&info), unsafe.Sizeof(info)); err != nil {
			return 0, err
		}
	}
	switch {
	case info.kind == link.KprobeMultiType:
		return info.multi, nil
	case info.kind == link.PerfEventType && (info.event == kprobe || info.event == kretprobe):
		return info.perf, nil
	}
	return 0, errors.New("the link does not tell")
}

// programMissed returns recursion_misses of struct bpf_prog_info, which is 0 before 5.12.
func (s *Session) programMissed(name string) (uint64, error) {
	var info struct {
		_      [26]uint64
		missed uint64
	}
	err := objectInfo(s.coll.Programs[name].FD(), unsafe.Pointer(&info), unsafe.Sizeof(info))
	if err != nil {
		return 0, fmt.Errorf("read what %s missed: %w", name, err)
	}
	return info.missed, nil
}

// objectInfo asks the kernel about a program, a link or types. What package ebpf has for
// that would add 37 KB to the binary.
func objectInfo(fd int, info unsafe.Pointer, size uintptr) error {
	of := struct {
		fd, size uint32
		info     unsafe.Pointer
	}{uint32(fd), uint32(size), info}
	_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_OBJ_GET_INFO_BY_FD, uintptr(unsafe.Pointer(&of)), unsafe.Sizeof(of))
	if errno != 0 {
		return errno
	}
	return nil
}

// counterMemory is [compiler.CountersMap], [compiler.WatchedMap] or [compiler.ObjectsMap],
// mapped into this process and shared with the programs. Any goroutine may use it.
type counterMemory struct {
	mu    sync.RWMutex
	bytes []byte // nil once unmapped
}

func mapCounters(m *ebpf.Map) (*counterMemory, error) {
	page := unix.Getpagesize()
	size := (int(m.ValueSize()) + page - 1) / page * page
	b, err := unix.Mmap(m.FD(), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the counters into memory: %w", err)
	}
	return &counterMemory{bytes: b}, nil
}

var errUnmapped = fmt.Errorf("read the counters: %w", os.ErrClosed)

// use calls f with a function that loads a word, unless the memory is unmapped.
func (c *counterMemory) use(f func(load func(off int) uint64)) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.bytes == nil {
		return errUnmapped
	}
	f(func(off int) uint64 { return atomic.LoadUint64(c.word(off)) })
	return nil
}

func (c *counterMemory) store(off int, v uint64) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.bytes == nil {
		return errUnmapped
	}
	atomic.StoreUint64(c.word(off), v)
	return nil
}

// word returns the address of the word at off, which is a multiple of 8.
func (c *counterMemory) word(off int) *uint64 {
	return (*uint64)(unsafe.Pointer(&c.bytes[off : off+8][0]))
}

func (c *counterMemory) unmap() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes == nil {
		return nil
	}
	b := c.bytes
	c.bytes = nil
	return unix.Munmap(b)
}

// countObjects remembers how many objects were followed until now: programs go on after
// Stop.
func (s *Session) countObjects() {
	if s.objects != nil && !s.stopped.Load() { // a session that is closed has ended before
		_ = s.objects.use(func(load func(off int) uint64) { s.followed.Store(load(compiler.ObjectLast)) })
	}
}

// Objects returns how many objects the spec has chosen so far, and the numbers of all
// those that are followed. One whose end was read may still be among them for a moment, as
// a program forgets it after it has written the record. It makes no system call.
func (s *Session) Objects() (begun int, live []uint64, err error) {
	if s.objects == nil {
		return 0, nil, nil
	}
	err = s.objects.use(func(load func(off int) uint64) {
		begun = int(load(compiler.ObjectStarted))
		for i := range compiler.MostObjects {
			if load(compiler.ObjectAddrs+8*i) != 0 {
				live = append(live, load(compiler.ObjectNumbers+8*i))
			}
		}
	})
	return begun, live, err
}
