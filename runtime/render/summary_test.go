package render

import (
	"fmt"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// newCountedUnit returns a unit whose probe f has a program for each side, and in
// which g and h share a program.
func newCountedUnit() *compiler.Unit {
	f := &compiler.Probe{Func: &compiler.Function{Name: "f", Module: "m"}}
	g := &compiler.Probe{Func: &compiler.Function{Name: "g"}}
	h := &compiler.Probe{Func: &compiler.Function{Name: "h"}}
	return &compiler.Unit{
		Collection: &ebpf.CollectionSpec{Maps: map[string]*ebpf.MapSpec{}},
		Events: []*compiler.EventType{
			{Probe: f, Kind: compiler.EntryEvent},
			{Probe: f, Kind: compiler.ReturnEvent},
			{Probe: g, Kind: compiler.EntryEvent},
			{Probe: h, Kind: compiler.EntryEvent},
		},
		Attachments: []compiler.Attachment{
			{Kind: compiler.Fexit, Places: []compiler.Place{{Probe: f}}},
			{Kind: compiler.Fentry, Places: []compiler.Place{{Probe: f}}},
			{Kind: compiler.KprobeMulti, Places: []compiler.Place{{Probe: g}, {Probe: h}}},
		},
	}
}

// counts returns the counts of the unit's events, with one delivered event each.
func counts(unit *compiler.Unit, counters []compiler.Counters) (all []runtime.Counts) {
	for i, c := range counters {
		all = append(all, runtime.Counts{EventType: unit.Events[i], Counters: c, Delivered: 1})
	}
	return all
}

// TestJSONSummary verifies that counts are printed even if they are 0, unless
// nothing keeps them.
func TestJSONSummary(t *testing.T) {
	unit := newCountedUnit()
	unit.CountsCalls = true
	f, g, h := unit.Events[0].Probe, unit.Events[2].Probe, unit.Events[3].Probe
	s := NewSummary(unit, runtime.SessionCounts{Events: counts(unit, []compiler.Counters{
		{Lost: 5, Filtered: 2, Matched: 6}, {Unpaired: 1}, {NoRoom: 2}, {Unreadable: 3},
	}), Missed: []runtime.Missed{
		{Kind: compiler.Fexit, Probes: []*compiler.Probe{f}, N: 7},
		{Kind: compiler.Fentry, Probes: []*compiler.Probe{f}, Uncounted: true},
		{Kind: compiler.KprobeMulti, Probes: []*compiler.Probe{g, h}, N: 9},
	}})
	p := newJSON(Options{Values: dumpDefaults}, unit)
	p.End(s)
	require.Equal(t, `{"type":"summary","probes":[`+
		`{"func":"f","module":"m","kind":"entry","attach":"fentry","hits":8,"filtered":2,"matched":6,"delivered":1,"lost":5,"noroom":0,"unreadable":0,"unpaired":0},`+
		`{"func":"f","module":"m","kind":"return","attach":"fexit","hits":0,"filtered":0,"matched":0,"delivered":1,"lost":0,"noroom":0,"missed":7,"unreadable":0,"unpaired":1},`+
		`{"func":"g","kind":"entry","attach":"kprobe.multi","hits":0,"filtered":0,"matched":0,"delivered":1,"lost":0,"noroom":2,"unreadable":0,"unpaired":0},`+
		`{"func":"h","kind":"entry","attach":"kprobe.multi","hits":0,"filtered":0,"matched":0,"delivered":1,"lost":0,"noroom":0,"unreadable":3,"unpaired":0}],`+
		`"shared":[{"attach":"kprobe.multi","funcs":["g","h"],"missed":9}]}`+"\n", string(p.text))
	require.NoError(t, strictSchema(t, "trace").Lines(string(p.text)))
}

// TestSummaryTable verifies that hits are printed if every call is counted.
func TestSummaryTable(t *testing.T) {
	unit := newCountedUnit()
	unit.CountsCalls = true
	f, g, h := unit.Events[0].Probe, unit.Events[2].Probe, unit.Events[3].Probe
	s := NewSummary(unit, runtime.SessionCounts{Events: counts(unit, []compiler.Counters{
		{Lost: 5, Filtered: 2, Matched: 6}, {Unpaired: 1, Matched: 1}, {NoRoom: 2, Matched: 1}, {Unreadable: 3, Filtered: 3, Matched: 1},
	}), Missed: []runtime.Missed{
		{Kind: compiler.Fexit, Probes: []*compiler.Probe{f}, N: 7},
		{Kind: compiler.KprobeMulti, Probes: []*compiler.Probe{g, h}, N: 9},
	}})
	require.Equal(t, `
  FUNCTION  KIND    ATTACH        HITS  FILTERED  MATCHED  DELIVERED  LOST  MISSED  NO ROOM  UNREADABLE  UNPAIRED
  f         entry   fentry           8         2        6          1     5  -             0           0         0
  f         return  fexit            1         0        1          1     0  7             0           0         1
  g         entry   kprobe.multi     1         0        1          1     0  -             2           0         0
  h         entry   kprobe.multi     4         3        1          1     0  -             0           3         0
  the 2 functions by kprobe.multi that begin with g missed 9 in all
`, "\n"+s.Text(0))
}

// TestSummaryFolds verifies that columns that do not fit are below the others, also where
// the last one is not a number in each row.
func TestSummaryFolds(t *testing.T) {
	n := func(n uint64) *uint64 { return &n }
	span := Counts{Hits: n(12), Filtered: n(0), Matched: n(12), Delivered: n(10), Lost: n(2), NoRoom: n(0), Unreadable: n(0), Unpaired: n(0)}
	begin := span
	begin.Replaced, begin.Open = n(1), n(3)
	s := Summary{Probes: []ProbeSummary{{ProbeName{Func: "vfs_open", Kind: "begin", Attach: "fentry"}, begin}, {ProbeName{Func: "vfs_read", Kind: "span", Attach: "fexit"}, span}}}
	require.Equal(t, `
  FUNCTION  KIND   ATTACH  HITS  FILTERED  MATCHED  DELIVERED
  vfs_open  begin  fentry    12         0       12         10
  vfs_read  span   fexit     12         0       12         10

  FUNCTION  LOST  MISSED  NO ROOM  UNREADABLE  UNPAIRED
  vfs_open     2  -             0           0         0
  vfs_read     2  -             0           0         0

  FUNCTION  REPLACED  OPEN
  vfs_open  1         3
  vfs_read  -         -
`, "\n"+s.Text(61))
}

// TestSummaryAddsMissed verifies that the misses of several links of one probe are
// added.
func TestSummaryAddsMissed(t *testing.T) {
	unit := newCountedUnit()
	m := runtime.Missed{Kind: compiler.Fexit, Probes: []*compiler.Probe{unit.Events[1].Probe}, N: 7}
	s := NewSummary(unit, runtime.SessionCounts{Events: counts(unit, make([]compiler.Counters, 4)), Missed: []runtime.Missed{m, m}})
	require.Nil(t, s.Probes[0].Missed)
	require.Equal(t, uint64(14), *s.Probes[1].Missed)
}

// A call that kprobes skip is missed on both sides, and counts once for the event that
// both programs write. By fentry and fexit it is missed on one side.
func TestSummaryCountsOnce(t *testing.T) {
	for _, tc := range []struct {
		entry, ret     compiler.Kind
		atEntry, atRet uint64
		want           uint64
	}{
		{compiler.Kprobe, compiler.Kretprobe, 5, 5, 5},
		{compiler.Kprobe, compiler.Kretprobe, 5, 7, 7},
		{compiler.KprobeMulti, compiler.KretprobeMulti, 5, 4, 5},
		{compiler.Fentry, compiler.Fexit, 5, 4, 9},
	} {
		probe := &compiler.Probe{Func: &compiler.Function{Name: "f"}, Stash: true}
		unit := &compiler.Unit{Attachments: []compiler.Attachment{
			{Kind: tc.ret, Places: []compiler.Place{{Probe: probe}}},
			{Kind: tc.entry, Places: []compiler.Place{{Probe: probe}}},
		}}
		for i, kind := range []compiler.EventKind{compiler.EntryEvent, compiler.CallEvent} {
			unit.Events = append(unit.Events, &compiler.EventType{Number: i, Probe: probe, Kind: kind})
		}
		probes := []*compiler.Probe{probe}
		all := []runtime.Missed{{Kind: tc.ret, Probes: probes, N: tc.atRet}, {Kind: tc.entry, Probes: probes, N: tc.atEntry}}
		c := runtime.SessionCounts{Events: counts(unit, make([]compiler.Counters, 2)), Missed: all}
		s := NewSummary(unit, c)
		require.Equal(t, tc.atEntry, *s.Probes[0].Missed)
		require.Equal(t, tc.want, *s.Probes[1].Missed)
		require.Equal(t, tc.want, c.Lost())
		require.Equal(t, tc.atRet, all[0].N, "it has not changed")
		var said uint64
		for _, line := range Losses(c, false) {
			var n uint64
			_, err := fmt.Sscanf(line, "missed %d calls of f", &n)
			require.NoError(t, err, line)
			said += n
		}
		require.Equal(t, tc.want, said)
	}
}

func TestJSONLoss(t *testing.T) {
	n := func(n uint64) *uint64 { return &n }
	p := newJSON(Options{Values: dumpDefaults}, nil)
	p.Loss(Loss{
		Time: 123456789,
		ProbeSummary: ProbeSummary{
			ProbeName{Func: "f", Kind: "call", Attach: "kprobe.session"},
			Counts{Hits: n(9), Filtered: n(1), Matched: n(8), Delivered: n(5), Lost: n(3), NoRoom: n(0), Missed: n(2), Unreadable: n(4), Unpaired: n(6)},
		},
	})
	require.Equal(t, `{"type":"loss","time":123456789,"func":"f","kind":"call","attach":"kprobe.session",`+
		`"hits":9,"filtered":1,"matched":8,"delivered":5,"lost":3,"noroom":0,"missed":2,"unreadable":4,"unpaired":6}`+"\n", string(p.text))
	require.NoError(t, strictSchema(t, "trace").Lines(string(p.text)))
	p.text = nil
	p.Loss(Loss{Time: 5, Shared: []SharedMissed{{"kprobe.multi", []string{"f", "g"}, 3}}})
	require.Equal(t, `{"type":"loss","time":5,"shared":[{"attach":"kprobe.multi","funcs":["f","g"],"missed":3}]}`+"\n", string(p.text))
	require.NoError(t, strictSchema(t, "trace").Lines(string(p.text)))
}

// TestNewLosses verifies that events have what their programs have missed, and that
// functions that share a program have the sum.
func TestNewLosses(t *testing.T) {
	var events []runtime.Counts
	unit := &compiler.Unit{}
	for i, name := range []string{"f", "g", "h"} {
		ev := &compiler.EventType{Number: i, Probe: &compiler.Probe{Func: &compiler.Function{Name: name}}, Kind: compiler.CallEvent}
		unit.Events = append(unit.Events, ev)
		kind := compiler.Kprobe
		if i > 0 {
			kind = compiler.KprobeMulti
		}
		unit.Attachments = append(unit.Attachments, compiler.Attachment{Kind: kind, Places: []compiler.Place{{Probe: ev.Probe}}})
		events = append(events, runtime.Counts{EventType: ev, Counters: compiler.Counters{Lost: uint64(i)}})
	}
	own := runtime.Missed{Kind: compiler.Kprobe, Probes: []*compiler.Probe{unit.Events[0].Probe}, N: 4}
	shared := runtime.Missed{Kind: compiler.KprobeMulti, Probes: []*compiler.Probe{unit.Events[1].Probe, unit.Events[2].Probe}, N: 7}
	all := NewLosses(unit, []runtime.Counts{events[2], events[0]}, []runtime.Missed{shared, own}, time.Second)
	require.Len(t, all, 3)
	require.Equal(t, "h", all[0].Func)
	require.Nil(t, all[0].Missed)
	require.Equal(t, "f", all[1].Func)
	require.Equal(t, uint64(4), *all[1].Missed)
	require.Equal(t, Loss{Time: time.Second, Shared: []SharedMissed{{"kprobe.multi", []string{"g", "h"}, 7}}}, all[2])
}

// TestTextHasNoSummary verifies that the text formats print no losses.
func TestTextHasNoSummary(t *testing.T) {
	for _, out := range []Printer{newPrinter(Options{Values: dumpDefaults}, &compiler.Unit{}), newCompact(Options{Values: dumpDefaults})} {
		out.Loss(Loss{})
		out.End(Summary{})
		require.Zero(t, out.Gathered())
	}
}
