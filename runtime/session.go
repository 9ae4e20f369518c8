package runtime

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
)

// Session is a unit in the kernel.
type Session struct {
	// Progress, unless it is nil, is called by [Session.Attach] and
	// [Session.Close] before each of their steps and at the end, with how many
	// of the places to attach to, or to detach from, are done.
	Progress func(done, total int)

	unit     *compiler.Unit
	kernel   *Kernel
	coll     *ebpf.Collection
	mu       sync.Mutex // held while what follows changes, and what it refers to
	attached []*attached
	closed   bool
	hooks    []link.Link // programs that follow processes
	ring     *ringbuf.Reader
	record   ringbuf.Record
	// delivered counts the records read of each event.
	delivered  []atomic.Uint64
	unread     []uint64 // those that were discarded
	discarding bool

	stopped  atomic.Bool
	draining bool // Read has seen that it is stopped,
	left     int  // when there were so many bytes to read

	groups    int      // of events in tracefs
	limited   []string // functions whose kretprobes have fewer return instances than asked for,
	limitedBy error    // and why
	notes     []string // see Notes

	modules map[string]uint64 // of what is attached, see moduleID
}

// Load verifies and loads the programs and maps of a unit. It needs CAP_BPF
// and CAP_PERFMON. If the verifier refuses a program, the error is a
// [*VerifierError].
func Load(u *compiler.Unit, k *Kernel) (_ *Session, err error) {
	if locked(os.ReadFile) {
		return nil, fmt.Errorf("load the programs: %w", errLockdown)
	}
	limit := lockableHere()
	s := &Session{unit: u, kernel: k, delivered: make([]atomic.Uint64, len(u.Events)), unread: make([]uint64, len(u.Events))}
	for _, size := range ringSizes(u, limit) {
		s.coll, err = k.load(withRing(u.Collection, size))
		if err == nil && size != 0 {
			s.notes = append(s.notes, memlockNote(u.Collection.Maps[compiler.EventsMap].MaxEntries, size, limit))
		}
		if !errors.Is(err, unix.EPERM) {
			break
		}
	}
	if err != nil {
		return nil, loadError(u.Collection, err, limit, ReadPrivileges())
	}
	defer func() {
		if err != nil {
			s.coll.Close()
		}
	}()
	s.ring, err = ringbuf.NewReader(s.coll.Maps[compiler.EventsMap])
	if err != nil {
		return nil, fmt.Errorf("open the ring buffer: %w", err)
	}
	return s, nil
}

// Close detaches, see [Session.Detach], and frees everything.
func (s *Session) Close() error {
	errs := []error{s.Detach()}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.hooks {
		errs = append(errs, h.Close())
	}
	s.hooks = nil
	errs = append(errs, s.ring.Close())
	s.coll.Close()
	s.closed = true
	return errors.Join(errs...)
}
