package run

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/fixture"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/runtime"
)

// guided returns a guide of events of these probes with these counts.
func guided(o *Options, text *strings.Builder, counts []compiler.Counters, probes ...*compiler.Probe) *guide {
	unit := &compiler.Unit{CountsCalls: o.Summary}
	for _, p := range probes {
		unit.Events = append(unit.Events, &compiler.EventType{Probe: p})
		if p.Measure == compiler.Tables {
			unit.Tables = append(unit.Tables, &compiler.TableLayout{})
		}
	}
	return &guide{w: text, o: o, unit: unit, begun: time.Now(), stopped: make(chan struct{}), counts: func() (all []runtime.Counts, err error) {
		for _, c := range counts {
			all = append(all, runtime.Counts{Counters: c})
		}
		return all, nil
	}}
}

func probeOf(name string) *compiler.Probe {
	return &compiler.Probe{Func: &compiler.Function{Name: name}}
}

// TestOpening verifies that a terminal is told what ends the run.
func TestOpening(t *testing.T) {
	counting, following := probeOf("f"), probeOf("f")
	counting.Measure = compiler.Tables
	begin, end := probeOf("a"), probeOf("b")
	begin.Span = &compiler.Span{Begin: begin, End: end}
	end.Span = begin.Span
	for _, tc := range []struct {
		options Options
		probes  []*compiler.Probe
		want    string
	}{
		{Options{}, []*compiler.Probe{probeOf("f")}, "tracing f: Ctrl-C ends it"},
		{Options{}, []*compiler.Probe{probeOf("f"), probeOf("g"), probeOf("h")}, "tracing f and 2 more: Ctrl-C ends it"},
		{Options{}, []*compiler.Probe{begin, end}, "tracing b: Ctrl-C ends it"},
		{Options{Bounds: Bounds{Duration: time.Minute}}, []*compiler.Probe{probeOf("f")}, "tracing f for 1m0s: Ctrl-C ends it"},
		{Options{Command: []string{"make", "-j"}}, []*compiler.Probe{probeOf("f\x1b")}, "tracing f? until make ends"},
		{Options{}, []*compiler.Probe{counting}, "counting f: Ctrl-C ends it and shows the table"},
		{Options{}, []*compiler.Probe{counting, counting}, "counting f: Ctrl-C ends it and shows the tables"},
		{Options{}, []*compiler.Probe{counting, probeOf("g")}, "tracing f and 1 more: Ctrl-C ends it"},
		{Options{Specs: target.Specs{Follow: &resolve.Following{}}}, []*compiler.Probe{following}, "following: Ctrl-C ends it"},
	} {
		require.Equal(t, tc.want, guided(&tc.options, nil, nil, tc.probes...).opening())
	}
}

// TestHint verifies that the reason why nothing comes is as exact as what is known of it.
func TestHint(t *testing.T) {
	filtered := probeOf("f")
	filtered.EntryConds = make([]compiler.Cond, 1)
	point := &compiler.Probe{Func: &compiler.Function{Name: "sched_tick", Tracepoint: true}}
	counting := probeOf("f")
	counting.Measure = compiler.Tables
	const uncalled = "it may not be called, or only where the compiler has inlined it; ksnoop list 'f*' shows functions with similar names"
	const whose = "ksnoop --for 10s 'f($comm, count())' shows who calls it"
	for _, tc := range []struct {
		options Options
		counts  compiler.Counters
		probe   *compiler.Probe
		want    string
	}{
		{Options{}, compiler.Counters{}, probeOf("f"), uncalled},
		{Options{}, compiler.Counters{}, point, "the kernel may not reach it; ksnoop list 'tp:sched_*' shows tracepoints with similar names"},
		{Options{}, compiler.Counters{}, filtered, uncalled + "; or the condition filters its calls out: " + whose},
		{Options{Programs: target.Programs{PID: 1, Tree: true}}, compiler.Counters{}, filtered, uncalled + "; or the condition, --pid, or --tree filters its calls out: " + whose},
		{Options{Programs: target.Programs{Cgroup: "x"}}, compiler.Counters{}, filtered, uncalled + "; or the condition or --cgroup filters its calls out: " + whose},
		{Options{Summary: true}, compiler.Counters{}, filtered, uncalled},
		{Options{Summary: true}, compiler.Counters{Filtered: 12}, filtered, "all of 12 calls were filtered out by the condition; " + whose},
		{Options{}, compiler.Counters{Unreadable: 3}, filtered, "in 3 calls, a value of the condition could not be read"},
		{Options{Summary: true}, compiler.Counters{Matched: 1, Filtered: 5}, filtered, ""},
		{Options{}, compiler.Counters{Lost: 1}, filtered, ""},
		{Options{}, compiler.Counters{Unpaired: 1}, filtered, ""},
		{Options{}, compiler.Counters{}, counting, ""},
		{Options{Specs: target.Specs{Watch: true}}, compiler.Counters{}, probeOf("f"), ""},
	} {
		want := tc.want
		if want != "" {
			want = "no event of " + map[bool]string{true: "tp:sched_tick", false: "f"}[tc.probe == point] + " in 10s: " + want
		}
		require.Equal(t, want, guided(&tc.options, nil, []compiler.Counters{tc.counts}, tc.probe).hint(tooLong))
	}
	broken := guided(&Options{}, nil, nil, probeOf("f"))
	broken.counts = func() ([]runtime.Counts, error) { return nil, errors.New("closed") }
	require.Empty(t, broken.hint(tooLong))
}

// TestGuide verifies what is written when: the opening, the hint once, and at the end
// the number of events if Ctrl-C has ended the run.
func TestGuide(t *testing.T) {
	var text strings.Builder
	g := guided(&Options{}, &text, []compiler.Counters{{}}, probeOf("f"))
	g.start(time.Millisecond)
	g.ended.Wait() // for the hint
	g.stop()
	g.stop()
	require.Equal(t, 2, strings.Count(text.String(), "\n"), text.String())
	require.Regexp(t, "^ksnoop: tracing f: .*\nksnoop: no event of f in 1ms: .*\n$", text.String())

	text.Reset()
	g = guided(&Options{}, &text, []compiler.Counters{{}}, probeOf("f"))
	g.o.Look.NoHeader = true
	g.start(time.Hour)
	g.stop()
	g.end(0)
	g.end(syscall.SIGTERM)
	require.Empty(t, text.String())
	g.counts = func() ([]runtime.Counts, error) { return []runtime.Counts{{Delivered: 1}}, nil }
	g.end(syscall.SIGINT)
	g.counts = func() ([]runtime.Counts, error) { return []runtime.Counts{{Delivered: 1}, {Delivered: 2}}, nil }
	g.end(syscall.SIGINT)
	require.Equal(t, "ksnoop: showed 1 event in 0s\nksnoop: showed 3 events in 0s\n", text.String())
	g.o.Summary = true
	g.end(syscall.SIGINT)
	require.Equal(t, 2, strings.Count(text.String(), "\n"))
}

// TestNoGuide verifies that nothing is said where stderr is not a terminal, and of
// iterators, which end by themselves.
func TestNoGuide(t *testing.T) {
	_, tty := fixture.OpenTerminal(t)
	unit := &compiler.Unit{Events: []*compiler.EventType{{Probe: probeOf("f")}}}
	require.NotNil(t, newGuide(tty, &Options{}, unit, nil))
	var text strings.Builder
	g := newGuide(&text, &Options{}, unit, nil)
	require.Nil(t, g)
	g.start(0)
	g.stop()
	g.end(syscall.SIGINT)
	require.Empty(t, text.String())
	unit.Events[0].Kind = compiler.RowEvent
	require.Nil(t, newGuide(tty, &Options{}, unit, nil))
}
