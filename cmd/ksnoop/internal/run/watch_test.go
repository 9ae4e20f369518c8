package run

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/clock"
	"github.com/ksnoop/ksnoop/runtime/recording"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// TestLossNotice verifies that losses are reported in one sentence, with the side
// that has lost the most.
func TestLossNotice(t *testing.T) {
	p := &compiler.Probe{Func: &compiler.Function{Name: "f"}}
	l := &recording.Loss{Counts: []runtime.Counts{
		{EventType: &compiler.EventType{Probe: p, Kind: compiler.EntryEvent}, Counters: compiler.Counters{Lost: 1}},
		{EventType: &compiler.EventType{Probe: p, Kind: compiler.ReturnEvent}, Counters: compiler.Counters{Lost: 2}},
	}}
	require.Equal(t, "lost 3 events of f (return) and 1 more so far: the ring buffer is full; --pages makes it larger", lossNotice(l))
	q := &compiler.Probe{Func: &compiler.Function{Name: "g"}}
	shared := runtime.Missed{Probes: []*compiler.Probe{q, p}, N: 3}
	require.Equal(t, "missed 3 calls of g and 1 others so far: the kernel skipped them", lossNotice(&recording.Loss{Missed: []runtime.Missed{shared}}))
	own := []runtime.Missed{{Probes: []*compiler.Probe{p}, N: 4}}
	require.Equal(t, "missed 4 calls of f (return) so far: the kernel skipped them", lossNotice(&recording.Loss{Counts: []runtime.Counts{
		{EventType: &compiler.EventType{Probe: p, Kind: compiler.ReturnEvent}},
	}, Missed: own}))
}

// TestGrown verifies that each growth is passed on once, with its time: of a function,
// all counts with what its own programs have missed; and of functions that share a
// program, what that has missed.
func TestGrown(t *testing.T) {
	probes := make([]*compiler.Probe, 4)
	c := &runtime.SessionCounts{}
	for i := range probes {
		probes[i] = &compiler.Probe{Func: &compiler.Function{Name: string('f' + rune(i))}}
		c.Events = append(c.Events, runtime.Counts{EventType: &compiler.EventType{Probe: probes[i], Kind: compiler.CallEvent}})
	}
	c.Missed = []runtime.Missed{
		{Kind: compiler.Fentry, Probes: probes[:1]}, {Kind: compiler.Kprobe, Probes: probes[1:2]}, {Kind: compiler.KprobeMulti, Probes: probes[2:]},
	}
	w := &watch{}
	require.Nil(t, w.add(c))
	c.Missed[0].N = 5
	before := clock.Now()
	l := w.add(c)
	require.Equal(t, []runtime.Counts{c.Events[0]}, l.Counts)
	require.Equal(t, c.Missed[:1], l.Missed)
	require.GreaterOrEqual(t, l.Time, before)
	require.Nil(t, w.add(c), "nothing has grown")
	c.Events[1].Lost, c.Missed[2].N = 1, 7
	l = w.add(c)
	require.Equal(t, []runtime.Counts{c.Events[1]}, l.Counts)
	require.Equal(t, []runtime.Missed{c.Missed[2], c.Missed[1]}, l.Missed, "also a program that has missed nothing: that is known")
	c.Missed[2].N = 8
	l = w.add(c)
	require.Empty(t, l.Counts)
	require.Equal(t, c.Missed[2:], l.Missed)
	require.Len(t, w.take(), 3)
}

// TestProgress verifies that events and losses are progress, each once.
func TestProgress(t *testing.T) {
	c := &runtime.SessionCounts{Events: make([]runtime.Counts, 1), Missed: make([]runtime.Missed, 1)}
	w := &watch{}
	require.False(t, w.progress(c))
	for _, n := range []*uint64{&c.Events[0].Delivered, &c.Events[0].Lost, &c.Events[0].Limited, &c.Missed[0].N} {
		*n++
		require.True(t, w.progress(c))
		require.False(t, w.progress(c))
	}
}

// TestActive verifies that an event ends a long wait for the next look.
func TestActive(t *testing.T) {
	w := &watch{next: time.NewTimer(time.Hour)}
	w.active()
	require.True(t, w.next.Reset(time.Hour), "it was not quiet")
	w.quiet.Store(true)
	w.active()
	<-w.next.C
	require.False(t, w.quiet.Load())
}

// foundThenWritten delivers a call that finds an object to watch, and a write to it.
type foundThenWritten struct {
	losses *watch
	events []*compiler.EventType
}

func (f *foundThenWritten) Idle() bool { return true }

func (f *foundThenWritten) Read(ev *runtime.Event) error {
	if len(f.events) == 0 {
		return io.EOF
	}
	ev.EventType, f.events = f.events[0], f.events[1:]
	if ev.Probe.Find != nil {
		f.losses.unseen = []runtime.Unseen{{}}
	}
	return nil
}

// lines notes what it is to print.
type lines struct {
	render.Printer
	names []string
}

func (l *lines) Event(ev *runtime.Event) error {
	l.names = append(l.names, ev.Probe.Func.Name)
	return nil
}

func (l *lines) Unseen(*runtime.Unseen) error {
	l.names = append(l.names, "unseen")
	return nil
}

func (l *lines) Gathered() int         { return 0 }
func (l *lines) Flush(io.Writer) error { return nil }

// TestUnseenOrder verifies that what has changed since the call that found an object is
// shown before the writes after that.
func TestUnseenOrder(t *testing.T) {
	probe := func(name string, find *compiler.Find) *compiler.EventType {
		return &compiler.EventType{Probe: &compiler.Probe{Func: &compiler.Function{Name: name}, Find: find}}
	}
	losses, out := &watch{session: &runtime.Session{}, next: time.NewTimer(time.Hour)}, &lines{}
	source := &foundThenWritten{losses, []*compiler.EventType{probe("found", &compiler.Find{}), probe("written", nil)}}
	require.NoError(t, show(io.Discard, source, out, losses, nil))
	require.Equal(t, []string{"found", "unseen", "written"}, out.names)
}

// TestObjectsOfMemory verifies that a number of objects is refused where no call finds any.
func TestObjectsOfMemory(t *testing.T) {
	o := &Options{Specs: target.Specs{Watch: true, Objects: 2, Texts: []string{"*(u32 *)0xffff888000000000", "(int)@panic_timeout"}}}
	_, _, err := prepare(o, io.Discard)
	require.ErrorContains(t, err, "--objects is for objects that calls find, and only memory is to be watched")
	require.True(t, exit.IsUsage(err))
}
