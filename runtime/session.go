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

	modules map[string]uint64 // of what is attached, see moduleID
}

// Load verifies and loads the programs and maps of a unit. It needs CAP_BPF
// and CAP_PERFMON. If the verifier refuses a program, the error is a
// [*VerifierError].
func Load(u *compiler.Unit, k *Kernel) (_ *Session, err error) {
	// If it cannot be raised, the maps may still fit.
	limit := raiseLockedMemory()
	if locked(os.ReadFile) {
		return nil, fmt.Errorf("load the programs: %w", errLockdown)
	}
	coll, err := ebpf.NewCollectionWithOptions(u.Collection, ebpf.CollectionOptions{Cache: k.cache})
	if err != nil {
		return nil, loadError(u.Collection, err, limit)
	}
	defer func() {
		if err != nil {
			coll.Close()
		}
	}()
	ring, err := ringbuf.NewReader(coll.Maps[compiler.EventsMap])
	if err != nil {
		return nil, fmt.Errorf("open the ring buffer: %w", err)
	}
	return &Session{unit: u, kernel: k, coll: coll, ring: ring, delivered: make([]atomic.Uint64, len(u.Events)), unread: make([]uint64, len(u.Events))}, nil
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
