package run

import (
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/recording"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// watch prints on stderr when something is lost, and when the loss grows, within a
// second, as the reader of the events may be stuck just then. The output gets the
// same losses, to show them when it can.
type watch struct {
	session *runtime.Session
	unit    *compiler.Unit
	stderr  io.Writer
	stopped chan struct{}
	ended   sync.WaitGroup

	lost []uint64 // of each event, as reported

	mu      sync.Mutex
	waiting []recording.Loss // for the output
	unseen  []runtime.Unseen
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

// look compares the counters with what was reported. If they cannot be read, the end
// of the run reports that.
func (w *watch) look() {
	w.lookUnseen()
	if w.session.Gone() {
		_ = w.session.Wake() // fails only if the session is being closed
	}
	counts, err := w.session.EventCounts()
	if err != nil {
		return
	}
	var grown []runtime.Counts
	for i, n := range counts {
		if missing := n.Lost + n.NoRoom; missing > w.lost[i] {
			w.lost[i] = missing
			grown = append(grown, n)
		}
	}
	if len(grown) == 0 {
		return
	}
	fmt.Fprintf(w.stderr, "ksnoop: %s\n", lossNotice(grown))
	w.mu.Lock()
	w.waiting = append(w.waiting, recording.Loss{Time: monotonic(), Counts: grown})
	w.mu.Unlock()
	_ = w.session.Wake() // fails only if the session is being closed
}

// lookUnseen passes changes of watched memory that no breakpoint has seen to the output.
func (w *watch) lookUnseen() {
	all, err := w.session.Unseen()
	if err != nil || len(all) == 0 {
		return // an error shows when the counts are read
	}
	w.add(all)
}

// add passes changes of a watched object to the output.
func (w *watch) add(all []runtime.Unseen) {
	w.mu.Lock()
	w.unseen = append(w.unseen, all...)
	w.mu.Unlock()
	_ = w.session.Wake() // fails only if the session is being closed
}

// lossNotice returns one sentence, however many functions have losses.
func lossNotice(grown []runtime.Counts) string {
	most, lost, noRoom := grown[0], uint64(0), uint64(0)
	for _, n := range grown {
		lost += n.Lost
		noRoom += n.NoRoom
		if n.Lost+n.NoRoom > most.Lost+most.NoRoom {
			most = n
		}
	}
	of := render.PlainName(render.SideName(most.EventType))
	if len(grown) > 1 {
		of += fmt.Sprintf(" and %d more", len(grown)-1)
	}
	if lost > 0 {
		return fmt.Sprintf("lost %d events of %s so far: the ring buffer is full; --pages makes it larger", lost, of)
	}
	if most.Probe.Follow != nil {
		return fmt.Sprintf("did not follow %d objects of %s so far: too many are followed already", noRoom, of)
	}
	return fmt.Sprintf("missed %d calls of %s so far: too many calls are active at once", noRoom, of)
}

// show passes the waiting losses to the output.
func (w *watch) show(out render.Printer) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.unseen {
		if err := out.Unseen(&w.unseen[i]); err != nil {
			return err
		}
	}
	w.unseen = w.unseen[:0]
	for _, l := range w.take() {
		showLoss(out, w.unit, l)
	}
	return nil
}

func showLoss(out render.Printer, unit *compiler.Unit, l recording.Loss) {
	for _, loss := range render.NewLosses(unit, l.Counts, l.Time) {
		out.Loss(loss)
	}
}

// take returns the waiting losses. The caller holds the lock.
func (w *watch) take() []recording.Loss {
	taken := w.waiting
	w.waiting = nil
	return taken
}

// monotonic returns the time by the clock of events.
func monotonic() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // this clock always exists
	return time.Duration(t.Nano())
}
