package runtime

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cilium/ebpf/ringbuf"
)

// ErrWoken is what [Session.Read] returns after [Session.Wake].
var ErrWoken = errors.New("woken")

// Read waits for the next record and decodes it into ev, whose former content
// becomes invalid. After [Session.Stop] it delivers what is left, then io.EOF.
// Only one goroutine may call it.
func (s *Session) Read(ev *Event) error {
	if s.ending() {
		return io.EOF
	}
	switch err := s.ring.ReadInto(&s.record); {
	case errors.Is(err, os.ErrClosed), errors.Is(err, ringbuf.ErrFlushed) && s.stopped.Load():
		return io.EOF
	case errors.Is(err, ringbuf.ErrFlushed):
		return ErrWoken
	case err != nil:
		return fmt.Errorf("read the ring buffer: %w", err)
	}
	s.left -= recordHeader + len(s.record.RawSample)
	if err := ev.Decode(s.unit, s.record.RawSample); err != nil {
		return err
	}
	if s.discarding {
		s.unread[ev.Number]++
	} else {
		s.delivered[ev.Number].Add(1)
	}
	return nil
}

// Discard reads what is left after [Session.Stop] for nobody to see, so that it
// is accounted for.
func (s *Session) Discard() error {
	s.discarding = true
	for ev := new(Event); ; {
		switch err := s.Read(ev); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, ErrWoken):
			return err
		}
	}
}

// recordHeader is what the ring buffer puts before each record.
const recordHeader = 8

// ending says whether all is read that was there when the session was stopped.
// The reader would go on for as long as more comes than it can read.
func (s *Session) ending() bool {
	if !s.stopped.Load() {
		return false
	}
	if !s.draining {
		s.draining, s.left = true, s.ring.AvailableBytes()
	}
	return s.left <= 0
}

// Idle says that no record is waiting: a good time to show what there is.
func (s *Session) Idle() bool { return s.ring.AvailableBytes() == 0 }

// Stop ends the trace, though the programs stay attached. Read returns once the
// records that wait now are read, and Attach before its next step. Of a unit
// with [compiler.Options].Tally no program shows, or counts, a call any more
// when it returns. Any goroutine may call it.
func (s *Session) Stop() error {
	err := s.freeze()
	s.stopped.Store(true)
	return errors.Join(err, s.ring.Flush())
}

// Wake makes Read return [ErrWoken] once the records that wait now are read.
// Any goroutine may call it.
func (s *Session) Wake() error { return s.ring.Flush() }
