package runtime

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cilium/ebpf/ringbuf"

	"github.com/ksnoop/ksnoop/compiler"
)

// Read waits for the next record and decodes it into ev, whose former content
// becomes invalid. After [Session.Stop] it delivers what is left, then io.EOF.
// Only one goroutine may call it.
func (s *Session) Read(ev *Event) error {
	switch err := s.ring.ReadInto(&s.record); {
	case errors.Is(err, ringbuf.ErrFlushed), errors.Is(err, os.ErrClosed):
		return io.EOF
	case err != nil:
		return fmt.Errorf("read the ring buffer: %w", err)
	}
	return ev.decode(s.unit, s.record.RawSample)
}

// Idle says that no record is waiting: a good time to show what there is.
func (s *Session) Idle() bool { return s.ring.AvailableBytes() == 0 }

// Stop makes Read return once the records that wait now are read. Any
// goroutine may call it.
func (s *Session) Stop() error { return s.ring.Flush() }

// Counters reads what the programs count for each event of the unit, summed
// over the CPUs.
func (s *Session) Counters() ([]compiler.Counters, error) {
	sums := make([]compiler.Counters, len(s.unit.Events))
	var perCPU []compiler.Counters
	for i := range sums {
		if err := s.coll.Maps[compiler.CountersMap].Lookup(uint32(i), &perCPU); err != nil {
			return nil, fmt.Errorf("read the counters: %w", err)
		}
		for _, c := range perCPU {
			sums[i].Lost += c.Lost
			sums[i].NoRoom += c.NoRoom
			sums[i].Unreadable += c.Unreadable
			sums[i].Unpaired += c.Unpaired
		}
	}
	return sums, nil
}
