package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime/clock"
)

// Ended tells what was watched of a member of an object that has ended.
type Ended struct {
	Probe *compiler.Probe // of the writes to it
	Addr  uint64          // of the memory, or 0 if the record of the call that found the object was lost
	Last  Value           // that was there; not known if Unwatched
	// Unseen is a change to the last value that no breakpoint has seen, or nil.
	Unseen *Unseen
	// Unwatched is set if it ended before its breakpoints were set: no write to it was seen.
	Unwatched bool
}

// WatchObject sets the breakpoints for an object that has been found, which events of
// probes with Find do. If members have changed since the call, it returns that, too.
func (s *Session) WatchObject(ev *Event) (changed []Unseen, err error) {
	if ev.EventType == nil || ev.Probe.Find == nil {
		return nil, errors.New("watch an object: the event has found none")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for i, m := range ev.Probe.Find.Members {
		free := func(b *breakpoints) bool {
			return b.probe.Watch.Finder == ev.Probe && b.probe.Watch.Member == i && b.free()
		}
		all := s.breakpointsOf(free)
		if len(all) == 0 {
			continue // the programs find no more objects than there are breakpoints for
		}
		u, err := s.watchMember(all[0], ev, m)
		if u != nil {
			changed = append(changed, *u)
		}
		errs = append(errs, err)
	}
	return changed, errors.Join(errs...)
}

// watchMember sets the breakpoints for a member of an object.
func (s *Session) watchMember(b *breakpoints, ev *Event, m compiler.Member) (*Unseen, error) {
	addr, now := ev.ValueOf(m.Addr).Uint64(), ev.ValueOf(m.Now)
	b.addr, b.object, b.gone = addr, ev.Object.Number, 0
	if now.Fault != compiler.NoFault {
		return nil, fmt.Errorf("watch %s: the memory at %#x could not be read", b.probe.Func.Name, addr)
	}
	w := b.probe.Watch
	slot := w.Slot * compiler.WatchedSize
	atomic.StoreUint64(s.watched.word(slot+compiler.WatchedObject), ev.Object.Addr)
	atomic.StoreUint64(s.watched.word(slot+compiler.WatchedNumber), ev.Object.Number)
	found := bytes.Clone(now.Data)
	if !s.lives(b) {
		b.late = true
		return nil, nil // its end is the next event of it
	}
	if err := s.watchAt(b, addr); err != nil {
		return nil, &AttachError{b.probe, compiler.Breakpoint, err}
	}
	if !s.lives(b) {
		b.late = true // what is there now may be another object's
		return nil, nil
	}
	return b.sinceFound(found), nil
}

// sinceFound returns what has changed unseen since the call that found the object, or
// nil. The breakpoints must be set.
func (b *breakpoints) sinceFound(found []byte) *Unseen {
	u := b.early
	b.early = nil
	first := stateOf(b.probe.Watch.Old, b.first)
	if u == nil {
		u = &Unseen{Time: clock.Now(), Probe: b.probe, Addr: b.addr, Now: first}
	}
	u.Before = first
	u.Before.Data = found[:len(first.Data)]
	if bytes.Equal(u.Before.Data, u.Now.Data) {
		return nil
	}
	return u
}

// EndObject removes the breakpoints of an object that has ended, and stores in the
// event what was watched of it. That is nothing of a member that WatchObject could not read.
func (s *Session) EndObject(ev *Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.breakpointsOf(func(b *breakpoints) bool { return b.object == ev.Object.Number }) {
		ended, err := s.endMember(b)
		if err != nil {
			return err
		}
		if !b.late && atomic.LoadUint64(s.watched.word(b.probe.Watch.Slot*compiler.WatchedSize+compiler.WatchedAddr)) == 0 {
			continue
		}
		if ended.Unseen != nil {
			ended.Unseen.Time = ev.Time
		}
		ev.Ended = append(ev.Ended, ended)
	}
	return nil
}

// Gone reports whether an object had been found, or a watched one had ended, at an earlier
// call already, and no event of that was read since: the record is lost, or still to be read.
func (s *Session) Gone() (gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	missing := s.missing()
	for _, b := range s.breakpointsOf(func(*breakpoints) bool { return true }) {
		if !slices.Contains(missing, b) {
			b.gone = 0
			continue
		}
		b.gone++
		gone = gone || b.gone > 1
	}
	return gone
}

// missing returns the breakpoints of objects that have ended, and those for objects that
// were found: no record of that was read yet. WatchObject takes the others first.
func (s *Session) missing() (all []*breakpoints) {
	begun, _, _ := s.Objects() // fails only if the session is closed
	left := 0                  // breakpoints for objects that are not found yet
	for _, b := range s.breakpointsOf((*breakpoints).free) {
		if find := b.probe.Watch.Finder; left < (find.Follow.Limit-begun)*len(find.Find.Members) {
			left++
			continue
		}
		all = append(all, b)
	}
	return append(all, s.breakpointsOf(func(b *breakpoints) bool { return b.object != 0 && !s.lives(b) })...)
}

// free reports whether breakpoints are for an object of which no record was read.
func (b *breakpoints) free() bool { return b.addr == 0 && !b.ended }

// EndGone removes the breakpoints of objects for which Gone has returned true, and
// returns what was watched of them. It is for the reader of events, after the records
// that were waiting then.
func (s *Session) EndGone() (all []Ended, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.missing() {
		if b.gone < 2 {
			continue
		}
		if b.free() {
			b.ended = true
			all = append(all, Ended{Probe: b.probe})
			continue
		}
		ended, err := s.endMember(b)
		if err != nil {
			return all, err
		}
		all = append(all, ended)
	}
	return all, nil
}

// endMember removes the breakpoints for a member of an object that has ended.
func (s *Session) endMember(b *breakpoints) (Ended, error) {
	n, err := b.counts() // all programs for writes before have run
	if err != nil {
		return Ended{}, err
	}
	unwatched := b.late && n == b.counted
	b.counted, b.object, b.ended = n, 0, true
	e := Ended{Probe: b.probe, Addr: b.addr, Unwatched: unwatched}
	if !unwatched {
		s.readLast(b.probe.Watch, &e)
	}
	if err := b.Close(); err != nil {
		return Ended{}, fmt.Errorf("remove a breakpoint: %w", err)
	}
	return e, nil
}

// readLast stores the last value of a member: the one that was seen last, or if it is
// known, the one at the end of the object.
func (s *Session) readLast(w *compiler.Watch, e *Ended) {
	state := func(off int) Value {
		return stateOf(w.Old, atomic.LoadUint64(s.watched.word(w.Slot*compiler.WatchedSize+off)))
	}
	e.Last = state(compiler.WatchedLast)
	if atomic.LoadUint64(s.watched.word(w.Slot*compiler.WatchedSize+compiler.WatchedKnown)) == 0 {
		return
	}
	seen := e.Last
	e.Last = state(compiler.WatchedEnd)
	follows := w.New != nil || atomic.LoadUint64(s.watched.word(w.Slot*compiler.WatchedSize+compiler.WatchedHits)) == 0
	if follows && !bytes.Equal(seen.Data, e.Last.Data) {
		e.Unseen = &Unseen{Probe: e.Probe, Addr: e.Addr, Before: seen, Now: e.Last}
	}
}

// breakpointsOf returns the breakpoints for objects that satisfy is.
func (s *Session) breakpointsOf(is func(*breakpoints) bool) (all []*breakpoints) {
	for _, at := range s.attached {
		if b, ok := at.link.(*breakpoints); ok && b.probe.Watch.Finder != nil && is(b) {
			all = append(all, b)
		}
	}
	return all
}

// lives reports whether the object of breakpoints has not ended. What is watched of a
// variable always lives.
func (s *Session) lives(b *breakpoints) (live bool) {
	if b.probe.Watch.Finder == nil {
		return true
	}
	_ = s.objects.use(func(load func(off int) uint64) { // fails only if the session is closed
		for i := range compiler.MostObjects {
			live = live || load(compiler.ObjectAddrs+8*i) != 0 && load(compiler.ObjectNumbers+8*i) == b.object
		}
	})
	return live && b.object != 0
}

// Watching reports whether memory is watched, or an object to watch may still be found.
func (s *Session) Watching() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.attached, func(at *attached) bool {
		b, ok := at.link.(*breakpoints)
		return ok && !b.ended
	})
}
