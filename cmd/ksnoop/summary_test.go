package main

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// newCountedUnit is a unit whose probe f has a program for each side, and g and
// h share one.
func newCountedUnit() *compiler.Unit {
	f := &compiler.Probe{Func: &compiler.Function{Name: "f", Module: "m"}}
	g := &compiler.Probe{Func: &compiler.Function{Name: "g"}}
	h := &compiler.Probe{Func: &compiler.Function{Name: "h"}}
	return &compiler.Unit{
		Collection: &ebpf.CollectionSpec{Maps: map[string]*ebpf.MapSpec{}},
		Events: []*compiler.Event{
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

// tallies are those of the unit's events, of which one was delivered each.
func tallies(unit *compiler.Unit, counters []compiler.Counters) (all []runtime.Tally) {
	for i, c := range counters {
		all = append(all, runtime.Tally{Event: unit.Events[i], Counters: c, Delivered: 1})
	}
	return all
}

// What is counted stands there, even if it is 0; what is not does not.
func TestJSONSummary(t *testing.T) {
	unit := newCountedUnit()
	unit.Collection.Maps[compiler.SwitchMap] = &ebpf.MapSpec{}
	f, g, h := unit.Events[0].Probe, unit.Events[2].Probe, unit.Events[3].Probe
	s := newSummary(unit, account{tallies(unit, []compiler.Counters{
		{Lost: 5, Filtered: 2, Matched: 6}, {Unpaired: 1}, {NoRoom: 2}, {Unreadable: 3},
	}), []runtime.Misses{
		{Kind: compiler.Fexit, Probes: []*compiler.Probe{f}, N: 7},
		{Kind: compiler.Fentry, Probes: []*compiler.Probe{f}, Uncounted: true},
		{Kind: compiler.KprobeMulti, Probes: []*compiler.Probe{g, h}, N: 9},
	}, 0})
	p := newJSON(dumpDefaults, unit, nil, "")
	p.end(s)
	require.Equal(t, `{"type":"summary","probes":[`+
		`{"func":"f","module":"m","kind":"entry","attach":"fentry","hits":8,"filtered":2,"matched":6,"delivered":1,"lost":5,"noroom":0,"unreadable":0,"unpaired":0},`+
		`{"func":"f","module":"m","kind":"return","attach":"fexit","hits":0,"filtered":0,"matched":0,"delivered":1,"lost":0,"noroom":0,"missed":7,"unreadable":0,"unpaired":1},`+
		`{"func":"g","kind":"entry","attach":"kprobe.multi","hits":0,"filtered":0,"matched":0,"delivered":1,"lost":0,"noroom":2,"unreadable":0,"unpaired":0},`+
		`{"func":"h","kind":"entry","attach":"kprobe.multi","hits":0,"filtered":0,"matched":0,"delivered":1,"lost":0,"noroom":0,"unreadable":3,"unpaired":0}],`+
		`"shared":[{"attach":"kprobe.multi","funcs":["g","h"],"missed":9}]}`+"\n", string(p.text))
	require.NoError(t, strictSchema(t, "trace").Lines(string(p.text)))
}

// With every call counted there are hits.
func TestSummaryTable(t *testing.T) {
	unit := newCountedUnit()
	unit.Collection.Maps[compiler.SwitchMap] = &ebpf.MapSpec{}
	f, g, h := unit.Events[0].Probe, unit.Events[2].Probe, unit.Events[3].Probe
	s := newSummary(unit, account{tallies(unit, []compiler.Counters{
		{Lost: 5, Filtered: 2, Matched: 6}, {Unpaired: 1, Matched: 1}, {NoRoom: 2, Matched: 1}, {Unreadable: 3, Filtered: 3, Matched: 1},
	}), []runtime.Misses{
		{Kind: compiler.Fexit, Probes: []*compiler.Probe{f}, N: 7},
		{Kind: compiler.KprobeMulti, Probes: []*compiler.Probe{g, h}, N: 9},
	}, 0})
	require.Equal(t, `
  FUNCTION  KIND    ATTACH        HITS  FILTERED  MATCHED  SHOWN  LOST  MISSED  NO ROOM  UNREADABLE  UNPAIRED
  f         entry   fentry           8         2        6      1     5  -             0           0         0
  f         return  fexit            1         0        1      1     0  7             0           0         1
  g         entry   kprobe.multi     1         0        1      1     0  -             2           0         0
  h         entry   kprobe.multi     4         3        1      1     0  -             0           3         0
  the 2 functions by kprobe.multi that begin with g missed 9 in all
`, "\n"+s.text(0))
}

// Several links of one probe miss calls of the same function.
func TestSummaryAddsMisses(t *testing.T) {
	unit := newCountedUnit()
	m := runtime.Misses{Kind: compiler.Fexit, Probes: []*compiler.Probe{unit.Events[1].Probe}, N: 7}
	s := newSummary(unit, account{tallies(unit, make([]compiler.Counters, 4)), []runtime.Misses{m, m}, 0})
	require.Nil(t, s.Probes[0].Missed)
	require.Equal(t, uint64(14), *s.Probes[1].Missed)
}

func TestJSONLoss(t *testing.T) {
	n := func(n uint64) *uint64 { return &n }
	p := newJSON(dumpDefaults, nil, nil, "")
	p.loss(loss{
		Time: 123456789,
		probeSummary: probeSummary{
			probeName{Func: "f", Kind: "call", Attach: "kprobe.session"},
			counts{n(9), n(1), n(8), n(5), n(3), n(0), n(2), n(4), n(6), nil},
		},
	})
	require.Equal(t, `{"type":"loss","time":123456789,"func":"f","kind":"call","attach":"kprobe.session",`+
		`"hits":9,"filtered":1,"matched":8,"delivered":5,"lost":3,"noroom":0,"missed":2,"unreadable":4,"unpaired":6}`+"\n", string(p.text))
	require.NoError(t, strictSchema(t, "trace").Lines(string(p.text)))
}

// The text formats leave losses to stderr.
func TestTextHasNoSummary(t *testing.T) {
	for _, out := range []output{newPrinter(dumpDefaults, &compiler.Unit{}, nil), newCompact(dumpDefaults, nil)} {
		out.loss(loss{})
		out.end(summary{})
		require.Zero(t, out.gathered())
	}
}
