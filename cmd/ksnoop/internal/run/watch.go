package run

import (
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/clock"
	"github.com/ksnoop/ksnoop/runtime/recording"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// watch prints on stderr when something is lost, and when the loss grows. It does not
// wait for the reader of the events, which may be stuck just then. The output gets the
// same losses, to show them when it can.
type watch struct {
	session *runtime.Session
	unit    *compiler.Unit
	stderr  io.Writer
	cgroup  *os.File // whose removal ends the session, or nil
	stopped chan struct{}
	ended   sync.WaitGroup
	next    *time.Timer // until the next look
	quiet   atomic.Bool // whether that is more than watchInterval away

	// What was reported: what each event has lost, and what each program missed.
	lost, missed []uint64
	counted      uint64 // all that the last look has counted

	mu      sync.Mutex
	waiting []recording.Loss // for the output
	unseen  []runtime.Unseen
}

// A look takes 4 to 16 wake-ups of threads of the Go runtime, so there are fewer looks
// while nothing happens.
const (
	watchInterval = time.Second
	quietInterval = 5 * time.Second
)

func startWatch(session *runtime.Session, unit *compiler.Unit, stderr io.Writer, cgroup *os.File) *watch {
	w := &watch{session: session, unit: unit, stderr: stderr, cgroup: cgroup, stopped: make(chan struct{}), next: time.NewTimer(watchInterval)}
	w.ended.Go(func() {
		defer w.next.Stop()
		for {
			select {
			case <-w.stopped:
				return
			case <-w.next.C:
				wait := w.look()
				w.next.Reset(wait)
				w.quiet.Store(wait > watchInterval)
			}
		}
	})
	return w
}

// active is called by the reader of the events when it has one. The next look must come
// soon then, as more events may follow than fit.
func (w *watch) active() {
	if w.quiet.Load() && w.quiet.CompareAndSwap(true, false) {
		w.next.Reset(watchInterval)
	}
}

func (w *watch) stop() {
	close(w.stopped)
	w.ended.Wait()
}

// look compares the counters with what was reported, and returns when to look again. If
// they cannot be read, the end of the run reports that.
func (w *watch) look() time.Duration {
	w.lookUnseen()
	if w.cgroup != nil && removed(w.cgroup) {
		fmt.Fprintf(w.stderr, "ksnoop: cgroup %s was removed\n", render.PlainName(w.cgroup.Name()))
		w.cgroup = nil
		_ = w.session.Stop() // the end of the run finds the error, too
	}
	if w.session.Gone() || allEnded(w.session) {
		_ = w.session.Wake() // fails only if the session is being closed
	}
	var c runtime.SessionCounts
	var err error
	if c.Events, err = w.session.EventCounts(); err != nil {
		return watchInterval
	}
	watched := len(w.unit.Watched()) > 0
	if !watched { // their misses are only known at the end
		if c.Missed, err = w.session.Missed(); err != nil {
			return watchInterval
		}
	}
	if l := w.add(&c); l != nil {
		fmt.Fprintf(w.stderr, "ksnoop: %s\n", lossNotice(l))
		_ = w.session.Wake() // fails only if the session is being closed
	}
	if quiet := !w.progress(&c); quiet && !watched {
		return quietInterval
	}
	return watchInterval
}

// progress reports whether events were read, or something was lost, since the last time.
func (w *watch) progress(c *runtime.SessionCounts) bool {
	counted := c.Lost()
	for _, n := range c.Events {
		counted += n.Delivered + n.Limited
	}
	more := counted != w.counted
	w.counted = counted
	return more
}

// add passes what has been lost since the last time to the output, and returns it, or
// nil if that is nothing.
func (w *watch) add(c *runtime.SessionCounts) *recording.Loss {
	var l recording.Loss
	missing := map[*compiler.Probe]bool{} // probes whose own programs have missed more calls
	for i, m := range c.Missed {
		switch {
		case !grown(&w.missed, i, m.N):
		case len(m.Probes) > 1:
			l.Missed = append(l.Missed, m)
		default:
			missing[m.Probes[0]] = true
		}
	}
	for i, n := range c.Events {
		if grown(&w.lost, i, n.Lost+n.NoRoom) || missing[n.Probe] {
			l.Counts = append(l.Counts, n)
		}
	}
	if len(l.Counts)+len(l.Missed) == 0 {
		return nil
	}
	for _, m := range c.Missed {
		own := func(n runtime.Counts) bool { return n.Probe == m.Probes[0] }
		if len(m.Probes) == 1 && slices.ContainsFunc(l.Counts, own) {
			l.Missed = append(l.Missed, m)
		}
	}
	l.Time = clock.Now()
	w.mu.Lock()
	w.waiting = append(w.waiting, l)
	w.mu.Unlock()
	return &l
}

// grown reports whether n is greater than the i-th number that was reported, and stores
// it in its place.
func grown(reported *[]uint64, i int, n uint64) bool {
	if i == len(*reported) {
		*reported = append(*reported, 0)
	}
	more := n > (*reported)[i]
	(*reported)[i] = n
	return more
}

// lookUnseen passes changes of watched memory that no breakpoint has seen to the output.
func (w *watch) lookUnseen() {
	all, err := w.session.Unseen()
	switch {
	case err != nil:
		_ = w.session.Wake() // the reader finds the error, too
	case len(all) > 0:
		w.addUnseen(all)
	}
}

// addUnseen passes changes of a watched object to the output.
func (w *watch) addUnseen(all []runtime.Unseen) {
	w.mu.Lock()
	w.unseen = append(w.unseen, all...)
	w.mu.Unlock()
	_ = w.session.Wake() // fails only if the session is being closed
}

// lossNotice returns one sentence, however many functions have losses.
func lossNotice(l *recording.Loss) string {
	lost, noRoom, missed := uint64(0), uint64(0), uint64(0)
	for _, m := range runtime.MissedOnce(l.Missed) {
		missed += m.N
	}
	if len(l.Counts) == 0 {
		return fmt.Sprintf("missed %d calls of %s and %d others so far: the kernel skipped them",
			missed, render.FunctionName(l.Missed[0].Probes[0].Func), len(l.Missed[0].Probes)-1)
	}
	most := l.Counts[0]
	for _, n := range l.Counts {
		lost += n.Lost
		noRoom += n.NoRoom
		if n.Lost+n.NoRoom > most.Lost+most.NoRoom {
			most = n
		}
	}
	of := render.PlainName(render.SideName(most.EventType))
	if len(l.Counts) > 1 {
		of += fmt.Sprintf(" and %d more", len(l.Counts)-1)
	}
	if lost > 0 {
		return fmt.Sprintf("lost %d events of %s so far: the ring buffer is full; --pages makes it larger", lost, of)
	}
	if most.Probe.Follow != nil {
		return fmt.Sprintf("did not follow %d objects of %s so far: too many are followed already", noRoom, of)
	}
	if noRoom > 0 {
		return fmt.Sprintf("missed %d calls of %s so far: too many calls are active at once", noRoom, of)
	}
	return fmt.Sprintf("missed %d calls of %s so far: the kernel skipped them", missed, of)
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
	for _, loss := range render.NewLosses(unit, l.Counts, l.Missed, l.Time) {
		out.Loss(loss)
	}
}

// take returns the waiting losses. The caller holds the lock.
func (w *watch) take() []recording.Loss {
	taken := w.waiting
	w.waiting = nil
	return taken
}
