package verdict

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/suite/bind"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/render"
	"github.com/ksnoop/ksnoop/runtime/userstack"
)

// evidence holds the last events of a line of evidence, in compact format.
type evidence struct {
	last int
	kept []string
	seen uint64
	lost uint64 // events for which the ring buffer had no room
}

// collect starts reading the evidence of a unit.
func (t *tester) collect(u *testUnit) {
	u.shows = map[*spec.Trace]*evidence{}
	for _, c := range t.counted {
		if c.last == 0 || c.skip != "" || c.err != nil || c.sides[0].unit != u {
			continue
		}
		c.shown = &evidence{last: c.last}
		for _, trace := range c.sides[0].traces {
			u.shows[trace] = c.shown
		}
	}
	names := render.NewSymbols(t.kernel.Finder, term.WarnOn(t.streams.Err))
	lines, err := render.New(u.unit, render.Options{
		Format: "compact", Values: btfdump.Options{Compact: true, EmitStrings: true}, Symbols: names, Stacks: userstack.Running(), Containers: t.containers, Look: render.Look{NoHeader: true},
	})
	u.shown = make(chan error, 1)
	if err != nil {
		u.shown <- err
		return
	}
	go func() { u.shown <- readEvidence(u.session, lines, u.shows) }()
}

// readEvidence reads events until the session is stopped.
func readEvidence(session *runtime.Session, lines render.Printer, of map[*spec.Trace]*evidence) error {
	for ev := new(runtime.Event); ; {
		switch err := session.Read(ev); {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, runtime.ErrWoken):
			continue
		case err != nil:
			return err
		}
		var line strings.Builder
		if err := errors.Join(lines.Event(ev), lines.Flush(&line)); err != nil {
			return err
		}
		if e := of[ev.Probe.Asked]; e != nil {
			e.keep(strings.TrimRight(line.String(), "\n"))
		}
	}
}

// keep stores a line, in place of the oldest if there are enough.
func (e *evidence) keep(line string) {
	e.seen++
	if len(e.kept) == e.last {
		e.kept = e.kept[1:]
	}
	e.kept = append(e.kept, line)
}

// collected waits until all evidence of a unit is read, and counts what was lost.
func (u *testUnit) collected() error {
	if u.shown == nil {
		return nil
	}
	counts, err := u.session.EventCounts()
	if err := errors.Join(<-u.shown, err); err != nil {
		return err
	}
	for _, t := range counts {
		if e := u.shows[t.Probe.Asked]; e != nil {
			e.lost += t.Lost
		}
	}
	return nil
}

// evidenceOf returns the evidence to show with a result, one line of evidence after
// the other, as each may be in a different unit.
func (t *tester) evidenceOf(name string) (lines []string) {
	for _, c := range t.counted {
		switch {
		case c.last == 0 || c.name != name:
		case c.err != nil:
			lines = append(lines, "evidence: "+bind.Sentence(c.err))
		case c.shown != nil:
			lines = append(lines, c.shown.lines()...)
		}
	}
	return lines
}

// lines returns the lines to show.
func (e *evidence) lines() []string {
	var lines []string
	for _, line := range e.kept {
		lines = append(lines, "evidence: "+strings.TrimLeft(line, " "))
	}
	if e.lost > 0 {
		lines = append(lines, fmt.Sprintf("evidence: %d events of %d were lost, as the ring buffer was full", e.lost, e.lost+e.seen))
	}
	return lines
}

// testStop ends a test at a signal.
type testStop struct {
	units []*testUnit
	over  chan struct{}
	once  sync.Once
	asked atomic.Bool
}

// Stop ends the work of the test, which then goes on to its results.
func (s *testStop) Stop() error {
	s.once.Do(func() {
		s.asked.Store(true)
		close(s.over)
	})
	return nil
}

// RemoveEvents does the same as [runtime.Session.RemoveEvents] for all sessions.
func (s *testStop) RemoveEvents() error {
	var errs []error
	for _, u := range s.units {
		errs = append(errs, u.session.RemoveEvents())
	}
	return errors.Join(errs...)
}
