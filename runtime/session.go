// Package runtime runs compiled units on this machine's kernel: it describes
// the kernel as a [compiler.Target], loads and attaches a [compiler.Unit], and
// reads and decodes the records that its programs write.
//
//	kernel, err := runtime.OpenKernel()
//	target, err := kernel.Target(resolve.Symbols(traces))
//	// resolve and compile a unit against target
//	session, err := runtime.Load(unit, kernel)
//	defer session.Close()
//	_, err = session.Attach()
//	for ev := new(runtime.Event); session.Read(ev) == nil; {
//		// use ev before the next Read
//	}
package runtime

import (
	"errors"
	"math"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime/clock"
)

// Session is a unit that is loaded into the kernel.
type Session struct {
	// Progress, unless nil, is called by [Session.Attach] and [Session.Close]
	// before each of their steps and at the end, with how many of the places
	// have been attached to, or detached from.
	Progress func(done, total int)
	// Recompile, unless nil, allows [Session.Attach] to trace a function by kprobe
	// if the kernel refuses the attach kind of its probe. Attach then changes the
	// probe and calls Recompile, which compiles the probes of the unit again with
	// the same options.
	Recompile func() (*compiler.Unit, error)

	unit       *compiler.Unit
	kernel     *Kernel
	coll       *ebpf.Collection
	mu         sync.Mutex // guards attached and what it refers to, closed, frozen and elements; reload holds it, too
	attached   []*attached
	closed     bool
	frozen     bool
	companions []link.Link // of the programs that follow processes and the ends of threads
	ring       *ring
	counters   *counterMemory
	watched    *counterMemory // compiler.WatchedMap, or nil
	objects    *counterMemory // compiler.ObjectsMap, or nil
	reading    sync.Mutex     // held while the ring buffer is read
	record     []byte
	rows       rowReader
	// delivered counts the records read of each event.
	delivered  []atomic.Uint64
	unread     []atomic.Uint64 // records discarded of each event
	discarding bool
	waits      uint64

	woken    atomic.Bool // Wake was called
	waking   bool        // Read has seen that
	until    uint64      // position in the ring buffer up to which it reads before it returns ErrWoken
	closing  atomic.Bool // the ring buffer is gone, or will be
	stopped  atomic.Bool
	draining bool   // Read has seen that the session is stopped
	last     uint64 // position in the ring buffer up to which it reads then

	groups    int      // number of groups of events in tracefs
	limited   []string // functions whose kretprobes have fewer return instances than asked for
	limitedBy error    // why limited is not empty
	notes     []string // see Notes
	instead   refusedKinds
	rejoined  []int    // CPUs that have come online since breakpoints were set
	cgroup    *os.File // see TraceIn, or nil
	refused   []*VerifierError

	held       bool                             // see Hold
	attachedAt time.Duration                    // CLOCK_MONOTONIC, when attaching began, or Begin was called
	elements   map[elementProgram]*ebpf.Program // programs for the elements of tables
	turn       int                              // index of the map in which calls are counted, of tables that have two
	emptied    map[*compiler.TableLayout]emptying

	modules map[string]uint64 // modules of attached functions, see moduleID
	gone    atomic.Bool       // whether checkVariables has returned an error

	followed atomic.Uint64 // objects that were followed until Stop
}

// Load verifies and loads the programs and maps of a unit. It needs CAP_BPF and
// CAP_PERFMON. If the verifier refuses programs of some probes, those are left out,
// see [Session.Refused]; if nothing is left to trace, the error is a
// [*VerifierError]. Where the kernel is locked down, or rights or memory are missing, it
// is a [*LoadError]. A unit of a recording, which has no programs, is an error, too.
func Load(u *compiler.Unit, k *Kernel) (_ *Session, err error) {
	if u.Collection == nil {
		return nil, errors.New("load a unit: it has no programs, as it is that of a recording")
	}
	if locked(os.ReadFile) {
		return nil, &LoadError{errLockdown}
	}
	limit := lockableHere()
	s := &Session{unit: u, kernel: k, delivered: make([]atomic.Uint64, len(u.Events)), unread: make([]atomic.Uint64, len(u.Events))}
	err = s.loadWithin(limit)
	for range lockedTries {
		if limit == math.MaxUint64 || !errors.Is(err, unix.EPERM) || ReadPrivileges().Refusal() != "" {
			break
		}
		time.Sleep(lockedPause)
		err = s.loadWithin(limit)
	}
	if err != nil {
		return nil, s.notLoaded(err, limit)
	}
	defer func() {
		if err != nil {
			s.coll.Close()
		}
	}()
	if s.ring, err = openRing(s.coll.Maps[compiler.EventsMap]); err != nil {
		return nil, err
	}
	if err = s.mapAll(); err != nil {
		return nil, errors.Join(err, s.ring.close(), s.unmapAll())
	}
	return s, nil
}

// mapAll maps what is shared with the programs.
func (s *Session) mapAll() (err error) {
	for _, m := range []struct {
		name string
		to   **counterMemory
	}{{compiler.CountersMap, &s.counters}, {compiler.WatchedMap, &s.watched}, {compiler.ObjectsMap, &s.objects}} {
		if of := s.coll.Maps[m.name]; of != nil {
			if *m.to, err = mapCounters(of); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Session) unmapAll() error {
	var errs []error
	for _, m := range []*counterMemory{s.counters, s.watched, s.objects} {
		if m != nil {
			errs = append(errs, m.unmap())
		}
	}
	return errors.Join(errs...)
}

// notLoaded returns an error that explains why a unit could not be loaded.
func (s *Session) notLoaded(err error, limit uint64) error {
	err = loadError(s.unit.Collection, err, limit, ReadPrivileges())
	if refused := (*VerifierError)(nil); errors.As(err, &refused) {
		refused.Probes = s.unit.Probes()
	}
	return err
}

// AttachedAt returns when attaching began, or [Session.Begin] was called, by
// CLOCK_MONOTONIC. No record is older.
func (s *Session) AttachedAt() time.Duration { return s.attachedAt }

// Hold makes the programs of a unit with [compiler.Options].CountCalls, which are not attached
// yet, do nothing before [Session.Begin]: attaching takes a while, in which some of them would
// count calls and others not yet.
func (s *Session) Hold() { s.held = s.unit.CountsCalls }

// Begin makes programs that [Session.Hold] holds begin, all at one moment.
func (s *Session) Begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.frozen || !s.held {
		return nil
	}
	s.held, s.attachedAt = false, clock.Now()
	return s.counters.store(compiler.ControlStopped, 0)
}

// Unit returns the unit that is loaded. [Session.Attach] may have replaced it, see
// [Session].Recompile.
func (s *Session) Unit() *compiler.Unit { return s.unit }

// Loading is tried again up to lockedTries times, after lockedPause each, where maps
// count against a limit: those of programs that have just ended count until the
// kernel frees them, after a grace period and in a work queue.
const (
	lockedTries = 20
	lockedPause = 50 * time.Millisecond
)

// loadWithin loads the unit with the largest ring buffer that the limit of locked
// memory allows.
func (s *Session) loadWithin(limit uint64) (err error) {
	for _, size := range ringSizes(s.unit, limit) {
		c := withRing(s.unit.Collection, size)
		if s.coll, err = s.kernel.load(c); err != nil {
			err = s.loadAccepted(c, err)
		}
		if err == nil {
			err = s.fillJumps()
		}
		if err == nil && size != 0 {
			s.notes = append(s.notes, memlockNote(s.unit.Collection.Maps[compiler.EventsMap].MaxEntries, size, limit))
		}
		if !errors.Is(err, unix.EPERM) {
			break
		}
	}
	return err
}

// Close ends reading and attaching, detaches as [Session.Detach] does, and frees
// everything. Any goroutine may call it, also again. Read returns io.EOF from then on, and
// Attach [ErrStopped].
func (s *Session) Close() error {
	// What waits for the reader, or for what is being attached, must not hold what they need.
	errs := []error{s.endReading(), s.Detach()}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.companions {
		errs = append(errs, l.Close())
	}
	s.companions = nil
	errs = append(errs, s.rows.close(), s.unmapAll())
	for _, p := range s.elements {
		errs = append(errs, p.Close())
	}
	s.coll.Close()
	s.closed = true
	return errors.Join(errs...)
}

// Detach detaches the programs from the functions, one link at a time. A link
// of many functions takes some milliseconds, whatever their number. An fentry
// or fexit takes 0.15 s on 6.1 to 6.18, a kprobe 0.05 s: the kernel waits for
// grace periods, under locks. Detaching in several threads is hardly faster, and a
// process that ends without Detach waits as long.
func (s *Session) Detach() error {
	done, total := 0, s.places()
	var errs []error
	for {
		s.report(done, total)
		at, err := s.detachOne(func(*attached) bool { return true })
		if at == nil {
			return errors.Join(errs...)
		}
		errs = append(errs, err)
		done += len(at.Places)
	}
}

// RemoveEvents detaches the attachments that have an event in tracefs, which
// outlives the process. The kernel detaches all others when the process ends. It is
// for a process that ends at once: any goroutine may call it after [Session.Stop],
// whatever the others do.
func (s *Session) RemoveEvents() error {
	var errs []error
	for {
		at, err := s.detachOne(func(at *attached) bool { return at.group != "" })
		if at == nil {
			return errors.Join(errs...)
		}
		errs = append(errs, err)
	}
}

// detachOne detaches the first attachment in place for which wanted is true and
// returns it, or nil if there is none.
func (s *Session) detachOne(wanted func(*attached) bool) (*attached, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.attached, wanted)
	if i < 0 {
		return nil, nil
	}
	at := s.attached[i]
	s.attached = slices.Delete(s.attached, i, i+1)
	return at, at.link.Close()
}

// places returns the number of places that are attached to.
func (s *Session) places() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.attached {
		n += len(at.Places)
	}
	return n
}

func (s *Session) report(done, total int) {
	if s.Progress != nil {
		s.Progress(done, total)
	}
}
