//go:build linux

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/e2e/bench"
)

// Live calls are made at a steady pace while the tracer is awake and shows them: 5,000
// a second.
const (
	liveCalls = 1000
	livePace  = 200 * time.Microsecond
)

// liveToll measures what a live call costs: the call itself, as counted by the clock
// of its thread, and what the tracer does with its event. All events must be shown.
func liveToll(t *testing.T, i invocation, call func(), loops int) (added, event float64, err error) {
	nothing := paced(t, call, loops)
	s := i.start(t)
	if err := s.attached(); err != nil {
		return 0, 0, err
	}
	paced(t, call, loops) // the first events touch memory for the first time
	before := s.instructions()
	added = paced(t, call, loops) - nothing
	s.settle()
	event = float64(s.instructions()-before) / float64(loops)
	events, err := s.end()
	if err == nil && events != 2*loops {
		err = fmt.Errorf("%s prints %d events of %d", i.path, events, 2*loops)
	}
	return added, event, err
}

// paced makes calls at the pace of live ones, and returns the instructions of one.
func paced(t *testing.T, call func(), loops int) float64 {
	require.NoError(t, unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0))
	sum, next := int64(0), instructions()
	for range loops {
		next += livePace.Nanoseconds()
		ts := unix.NsecToTimespec(next)
		for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &ts, nil) == unix.EINTR {
		}
		start := threadInstructions()
		call()
		sum += threadInstructions() - start
	}
	return float64(sum) / float64(loops)
}

// live prints what live calls cost.
func (b *benchmark) live(t *testing.T, c benchCase) {
	calls, events := map[bench.Column]float64{}, map[bench.Column]float64{}
	for column, i := range map[bench.Column]invocation{
		bench.Kprobe: bpftrace(c.functions, "-e", c.kprobe), bench.Kfunc: bpftrace(c.functions, "-e", c.kfunc),
	} {
		call, event, err := liveToll(t, i, b.calls[c.call], liveCalls)
		if err != nil {
			t.Logf("live %s %s: %v", c.name, column, err)
			continue
		}
		calls[column], events[column] = call, event
	}
	call, event, err := liveToll(t, ours(&c), b.calls[c.call], liveCalls)
	if err != nil {
		t.Errorf("live %s: %v", c.name, err)
		return
	}
	b.row(t, bench.Row{Name: "live/" + c.name + "/call", Unit: "per call", Ours: call, Peers: calls})
	b.row(t, bench.Row{Name: "live/" + c.name + "/tracer", Unit: "per event", Ours: event, Peers: events})
}

// burstCalls is a number of calls whose events do not fit into any tracer's buffers.
const burstCalls = 5000

// flood prints how many events of a flood are not shown. One flood comes while the
// tracer is stopped, so that only its buffers hold events; another one competes with the
// tracer for the only CPU. All tracers have buffers of their default size.
func (b *benchmark) flood(t *testing.T, c benchCase) {
	held, lost := map[bench.Column]float64{}, map[bench.Column]float64{}
	own := ours(&c)
	own.args = append([]string{"trace"}, c.ours...)
	peer := bpftrace(c.functions, "-e", c.kfunc)
	peer.env = peer.env[1:] // without the size of the buffers
	for column, i := range map[bench.Column]invocation{"": own, bench.Kfunc: peer} {
		var err error
		if held[column], err = b.shownOf(t, i, c, true); err == nil {
			lost[column], err = b.shownOf(t, i, c, false)
		}
		if err != nil {
			t.Logf("flood %s %s: %v", c.name, column, err)
			delete(held, column)
		}
	}
	if held[""] == 0 || lost[""] == 0 {
		t.Errorf("flood %s: there is no figure", c.name)
		return
	}
	row := func(name, unit string, figures map[bench.Column]float64, of func(float64) float64) {
		r := bench.Row{Name: "flood/" + c.name + "/" + name, Unit: unit, Ours: of(figures[""]), Peers: map[bench.Column]float64{}}
		if shown, ok := figures[bench.Kfunc]; ok {
			r.Peers[bench.Kfunc] = of(shown)
		}
		b.row(t, r)
	}
	all := float64(burstCalls * c.events)
	row("not-held", "of 10,000", held, func(shown float64) float64 { return all - shown })
	row("lost", "of 10,000", lost, func(shown float64) float64 { return max(all-shown, 0) })
	b.row(t, bench.Row{Name: "flood/" + c.name + "/record", Unit: "bytes", Ours: float64(1<<20) / held[""]})
}

// shownOf returns how many events of a flood a tracer shows.
func (b *benchmark) shownOf(t *testing.T, i invocation, c benchCase, stopped bool) (float64, error) {
	s := i.start(t)
	if err := s.attached(); err != nil {
		return 0, err
	}
	if stopped {
		s.pause()
	}
	for range burstCalls {
		b.calls[c.call]()
	}
	if stopped {
		s.resume()
	} else {
		s.settle()
	}
	events, err := s.finish()
	return float64(events), err
}
