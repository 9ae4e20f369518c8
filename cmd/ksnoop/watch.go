package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// A watch says on stderr when something is lost, and when it grows, within a
// second: the reader of the events may be stuck just then. The output gets the
// same, to show it when it can.
type watch struct {
	session *runtime.Session
	unit    *compiler.Unit
	stderr  io.Writer
	stopped chan struct{}
	ended   sync.WaitGroup

	lost []uint64 // of each event, as said

	mu      sync.Mutex
	waiting []loss // for the output
}

const watchInterval = time.Second

func startWatch(session *runtime.Session, unit *compiler.Unit, stderr io.Writer) *watch {
	w := &watch{session: session, unit: unit, stderr: stderr, stopped: make(chan struct{}), lost: make([]uint64, len(unit.Events))}
	w.ended.Go(func() {
		tick := time.NewTicker(watchInterval)
		defer tick.Stop()
		for {
			select {
			case <-w.stopped:
				return
			case <-tick.C:
				w.look()
			}
		}
	})
	return w
}

func (w *watch) stop() {
	close(w.stopped)
	w.ended.Wait()
}

// look compares the counters with what was said. If they cannot be read, the
// end of the run says so.
func (w *watch) look() {
	tallies, err := w.session.Tallies()
	if err != nil {
		return
	}
	var grown []runtime.Tally
	for i, n := range tallies {
		if missing := n.Lost + n.NoRoom; missing > w.lost[i] {
			w.lost[i] = missing
			grown = append(grown, n)
		}
	}
	if len(grown) == 0 {
		return
	}
	fmt.Fprintf(w.stderr, "ksnoop: %s\n", lossNotice(grown))
	attached := attachKinds(w.unit)
	w.mu.Lock()
	for _, n := range grown {
		w.waiting = append(w.waiting, loss{monotonic(), probeSummary{newProbeName(n.Event, attached[n.Probe]), newCounts(w.unit, n)}})
	}
	w.mu.Unlock()
	_ = w.session.Wake() // it is being closed
}

// lossNotice is one sentence, however many functions are meant.
func lossNotice(grown []runtime.Tally) string {
	most, lost, noRoom := grown[0], uint64(0), uint64(0)
	for _, n := range grown {
		lost += n.Lost
		noRoom += n.NoRoom
		if n.Lost+n.NoRoom > most.Lost+most.NoRoom {
			most = n
		}
	}
	of := plainName(functionName(most.Probe.Func))
	if len(grown) > 1 {
		of += fmt.Sprintf(" and %d more", len(grown)-1)
	}
	if lost > 0 {
		return fmt.Sprintf("lost %d events of %s so far: the ring buffer is full; --pages makes it larger", lost, of)
	}
	return fmt.Sprintf("missed %d calls of %s so far: too many calls are under way at once", noRoom, of)
}

// show hands the losses that wait to the output.
func (w *watch) show(out output) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.waiting {
		out.loss(l)
	}
	w.waiting = w.waiting[:0]
}

// monotonic is the time by the clock of events.
func monotonic() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // which always is there
	return time.Duration(t.Nano())
}
