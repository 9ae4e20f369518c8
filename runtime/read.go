package runtime

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/ksnoop/ksnoop/compiler"
)

// ErrWoken is returned by [Session.Read] after [Session.Wake].
var ErrWoken = errors.New("woken")

// ReadRecord waits for the next record as Read does, and returns it as the program
// wrote it. It is valid until the next call.
func (s *Session) ReadRecord() ([]byte, error) {
	s.reading.Lock()
	err := s.nextRecord()
	s.reading.Unlock()
	if err != nil {
		return nil, s.notRead(err)
	}
	number, err := recordedEvent(s.unit, s.record)
	if err != nil {
		return nil, err
	}
	if p := s.unit.Events[number].Probe; len(p.Modules) > 0 {
		if gone := s.checkVariables(p); gone != nil {
			s.unread[number].Add(1)
			return nil, gone
		}
	}
	s.delivered[number].Add(1)
	return s.record, nil
}

// notRead returns why there is no record. A reader that was woken looks for variables
// that have gone, as no event of them may come any more.
func (s *Session) notRead(err error) error {
	if errors.Is(err, ErrWoken) {
		return cmp.Or(s.checkAllVariables(), err)
	}
	return err
}

// Read waits for the next record and decodes it into ev, whose former content
// becomes invalid. After [Session.Stop] it returns the remaining records, then
// io.EOF; of iterators also when they have been read to the end. Only one goroutine
// may call it.
func (s *Session) Read(ev *Event) error {
	s.reading.Lock()
	defer s.reading.Unlock()
	if err := s.nextRecord(); err != nil {
		return s.notRead(err)
	}
	if err := ev.Decode(s.unit, s.record); err != nil {
		return err
	}
	gone := s.checkVariables(ev.Probe)
	if s.discarding || gone != nil {
		s.unread[ev.Number].Add(1)
	} else {
		s.delivered[ev.Number].Add(1)
	}
	if s.discarding {
		return nil
	}
	return gone
}

// Discard reads the records that remain after [Session.Stop] and drops them, so
// that they are counted.
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

// nextRecord waits for the next record.
func (s *Session) nextRecord() error {
	if s.unit.Iterates() {
		return s.nextRow()
	}
	for {
		if s.closing.Load() || s.ending() {
			return io.EOF
		}
		if s.awake() {
			return ErrWoken
		}
		var found bool
		if s.record, found = s.ring.next(s.record); found {
			return nil
		}
		if s.stopped.Load() {
			continue
		}
		s.waits++
		if err := s.ring.wait(); err != nil {
			return err
		}
	}
}

// endReading makes Read return io.EOF, and closes the ring buffer when nobody reads any
// more. The reader may need mu, so it must not be held.
func (s *Session) endReading() (err error) {
	if !s.closing.Swap(true) {
		err = s.ring.interrupt()
	}
	s.reading.Lock()
	defer s.reading.Unlock()
	return errors.Join(err, s.ring.close())
}

// ending reports whether all records have been read that were there when the
// session was stopped. Without this, reading would go on as long as more arrive.
func (s *Session) ending() bool {
	if !s.stopped.Load() {
		return false
	}
	if !s.draining {
		s.draining, s.last = true, s.ring.produced()
	}
	return s.ring.read >= s.last
}

// awake reports, once after a call of Wake, that all records have been read that were there
// when the reader saw the call. It does not wait until none is left: if records come faster
// than they are read, that would be never.
func (s *Session) awake() bool {
	if !s.woken.Load() {
		return false
	}
	if !s.waking {
		s.waking, s.until = true, s.ring.produced()
	}
	if s.ring.skip() != 0 && s.ring.read < s.until {
		return false
	}
	s.waking = false
	s.woken.Store(false)
	return true
}

// Idle reports whether no record is waiting: a good time to flush output. It is
// for the goroutine that reads.
func (s *Session) Idle() bool {
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.unit.Iterates() {
		return s.closing.Load() || s.rows.idle()
	}
	return s.closing.Load() || s.ring.skip() == 0
}

// Waits returns how often the ring buffer was empty when a record was to be read. It is
// for the goroutine that reads.
func (s *Session) Waits() uint64 { return s.waits }

// Stop ends the trace, though the programs stay attached. Read returns once the
// records that wait now are read, and Attach before its next step. In a unit with
// [compiler.Options].CountCalls no program writes an event or counts a call any more
// when Stop returns. Any goroutine may call it.
func (s *Session) Stop() error {
	err := s.freeze()
	s.countObjects()
	s.stopped.Store(true)
	return errors.Join(err, s.interrupt())
}

// Stopped reports whether Stop has been called.
func (s *Session) Stopped() bool { return s.stopped.Load() }

// over reports whether the session is stopped or closed, or will be.
func (s *Session) over() bool { return s.stopped.Load() || s.closing.Load() }

// Wake makes Read return [ErrWoken] once the records that wait now are read.
// Any goroutine may call it.
func (s *Session) Wake() error {
	s.woken.Store(true)
	return s.interrupt()
}

// interrupt ends waiting for a record.
func (s *Session) interrupt() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Load() { // which has ended it
		return nil
	}
	if err := s.ring.interrupt(); err != nil {
		return fmt.Errorf("wake the reader of the ring buffer: %w", err)
	}
	return nil
}

// freeze makes the programs of a unit with [compiler.Options].CountCalls do nothing
// any more, and waits for the end of those that have not seen this yet: a grace
// period, some 10 ms. From then on they write no record and count no call,
// though they are still attached.
func (s *Session) freeze() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.frozen || !s.unit.CountsCalls {
		return nil
	}
	if err := s.counters.store(compiler.ControlStopped, 1); err != nil {
		return err
	}
	if err := s.waitPrograms(); err != nil {
		return fmt.Errorf("wait for the programs to end: %w", err)
	}
	s.frozen = true
	return nil
}

// waitPrograms waits until every program that runs now has ended, on all CPUs. The
// kernel waits so when a map of maps is changed (4.20), so that the caller knows
// which of the maps is in use. membarrier would not do on a single CPU, where a
// task can be preempted inside a program.
func (s *Session) waitPrograms() error {
	return s.coll.Maps[compiler.BarrierMap].Update(uint32(0), s.coll.Maps[compiler.BarrierInner], ebpf.UpdateAny)
}

// ErrNotRun is returned by [Session.ReadOnce] if the kernel has not run the program:
// it was interrupted by another run of it.
var ErrNotRun = errors.New("the kernel did not run the program: try again")

// ReadOnce runs the program of a probe of [spec.ParseValues] at once, and decodes its
// record into ev, whose former content becomes invalid. Per-CPU variables are read as
// those of the CPU. Nothing is attached for this, so that it also works where no probe
// can be. No other goroutine may read. The error is [ErrNotRun] if the program did not run.
func (s *Session) ReadOnce(p *compiler.Probe, cpu int, ev *Event) error {
	for _, at := range s.unit.Attachments {
		if at.Kind != compiler.RawTP || at.Places[0].Probe != p {
			continue
		}
		if _, err := testRun(s.coll.Programs[at.Program].FD(), uint64(cpu)); err != nil {
			return fmt.Errorf("read %s: %w", p.Func.Name, err)
		}
		if s.Idle() {
			return ErrNotRun
		}
		return s.Read(ev)
	}
	return fmt.Errorf("read %s: it has no program", p.Func.Name)
}

// Without reports whether the verifier has refused the program of a probe, so that the
// session is without it.
func (s *Session) Without(p *compiler.Probe) bool {
	return slices.ContainsFunc(s.refused, func(e *VerifierError) bool { return slices.Contains(e.Probes, p) })
}
