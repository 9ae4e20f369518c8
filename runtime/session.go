package runtime

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/cilium/ebpf/rlimit"

	"github.com/ksnoop/ksnoop/compiler"
)

// Session is a unit in the kernel.
type Session struct {
	unit     *compiler.Unit
	kernel   *Kernel
	coll     *ebpf.Collection
	attached []*attached
	ring     *ringbuf.Reader
	record   ringbuf.Record
	stopped  atomic.Bool
	// late is how many bytes were read since it was stopped. More than the
	// ring buffer holds have come later: calls do not end with us.
	late int
	// delivered counts the records read of each event.
	delivered []atomic.Uint64

	groups    int      // of events in tracefs
	limited   []string // functions whose kretprobes have fewer return instances than asked for,
	limitedBy error    // and why
}

// Load verifies and loads the programs and maps of a unit. It needs CAP_BPF
// and CAP_PERFMON. If the verifier refuses a program, the error is a
// [*VerifierError].
func Load(u *compiler.Unit, k *Kernel) (_ *Session, err error) {
	// Before 5.11 maps count against the limit of locked memory. If it cannot
	// be raised, they may still fit.
	limit := rlimit.RemoveMemlock()
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
	return &Session{unit: u, kernel: k, coll: coll, ring: ring, delivered: make([]atomic.Uint64, len(u.Events))}, nil
}

// Close detaches and frees everything. Detaching may take 0.1 s for each
// program (RCU grace periods).
func (s *Session) Close() error {
	var errs []error
	for _, at := range s.attached {
		errs = append(errs, at.link.Close())
	}
	s.attached = nil
	errs = append(errs, s.ring.Close())
	s.coll.Close()
	return errors.Join(errs...)
}
