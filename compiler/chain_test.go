package compiler

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// chainRig is a rig whose calls of send, work and open are nested.
func chainRig(t *testing.T, f Features, specs ...string) *rig {
	return newRigOf(t, f, Options{Tally: true}, Wishes{Stack: true}, specs...)
}

func stackSend(result uint64) call {
	return call{fn: "send", args: []uint64{0, 0}, result: []uint64{result}}
}
func stackWork(mode uint64) call {
	return call{fn: "work", args: []uint64{mode, 0, 0}, result: []uint64{mode}}
}
func stackOpen(dfd uint64) call {
	return call{fn: "open", args: []uint64{dfd, 0}, result: []uint64{0}}
}

// steps runs a tree of calls: each is entered, has its inner calls made, and
// returns.
func (r *rig) nest(c call, inner ...func()) func() {
	return func() {
		leave := r.enter(c)
		for _, f := range inner {
			f()
		}
		leave()
	}
}

// chainShown lists the events with their functions and, by number in the order
// of appearance, their calls and callers.
func (r *rig) chainShown() []string {
	var lines []string
	calls := map[uint64]int{0: 0}
	r.shownOf = map[*Event]uint64{}
	for _, rec := range r.records {
		ev := r.unit.Events[binary.LittleEndian.Uint32(rec[HeaderEvent:])]
		id, caller := word(rec[HeaderCall:][:8]), word(rec[ev.Layout.Caller:][:8])
		if _, ok := calls[id]; !ok {
			calls[id] = len(calls)
		}
		r.shownOf[ev]++
		kind := map[EventKind]string{EntryEvent: "in", ReturnEvent: "out"}[ev.Kind]
		lines = append(lines, fmt.Sprintf("%s %s %d<%d", kind, ev.Probe.Func.Name, calls[id], calls[caller]))
	}
	r.records = nil
	return lines
}

// requireTally: each call counts once for every event of its function.
func (r *rig) requireTally() {
	r.t.Helper()
	for i, ev := range r.unit.Events {
		c := r.counters(i)
		r.tallied[i].Matched += r.shownOf[ev]
		r.tallied[i].Filtered += r.entered[ev.Probe.Func.Name] - r.shownOf[ev]
		require.Equal(r.t, *r.tallied[i], c, "event %d", i)
	}
	clear(r.entered)
}

func TestChain(t *testing.T) {
	all := []string{"in send 1<0", "in work 2<1", "in open 3<2", "out open 3<2", "out work 2<1", "out send 1<0"}
	for _, tc := range []struct {
		name  string
		specs []string
		calls func(r *rig) func()
		want  []string
	}{
		{"complete", nil, func(r *rig) func() {
			return r.nest(stackSend(0), r.nest(stackWork(1), r.nest(stackOpen(3))))
		}, all},
		{"incomplete", nil, func(r *rig) func() { return r.nest(stackSend(0), r.nest(stackWork(1))) }, nil},
		{"a level left out", nil, func(r *rig) func() { return r.nest(stackSend(0), r.nest(stackOpen(3))) }, nil},
		{"the wrong way round", nil, func(r *rig) func() {
			return r.nest(stackWork(0), r.nest(stackSend(1), r.nest(stackOpen(3))))
		}, nil},
		{"one after the other", nil, func(r *rig) func() {
			return r.nest(stackSend(0), r.nest(stackWork(1)), r.nest(stackOpen(3)))
		}, nil},
		{"the last one twice", nil, func(r *rig) func() {
			return r.nest(stackSend(0), r.nest(stackWork(1), r.nest(stackOpen(3)), r.nest(stackOpen(4))))
		}, []string{"in send 1<0", "in work 2<1", "in open 3<2", "out open 3<2", "in open 3<2", "out open 3<2", "out work 2<1", "out send 1<0"}},
		{"recursion outside", nil, func(r *rig) func() {
			return r.nest(stackSend(0), r.nest(stackSend(1), r.nest(stackWork(1), r.nest(stackOpen(3)))))
		}, all},
		{"recursion inside", nil, func(r *rig) func() {
			return r.nest(stackSend(0), r.nest(stackWork(1), r.nest(stackOpen(3), r.nest(stackOpen(4)))))
		}, []string{"in send 1<0", "in work 2<1", "in open 3<2", "in open 4<2", "out open 4<2", "out open 3<2", "out work 2<1", "out send 1<0"}},
		{"an inner call ends before", nil, func(r *rig) func() {
			return r.nest(stackSend(0), r.nest(stackSend(1)), r.nest(stackWork(1), r.nest(stackWork(2)), r.nest(stackOpen(3))))
		}, all},
		{"an outer predicate fails", []string{"send(return)", "work(mode == RESUME)", "open"}, func(r *rig) func() {
			return r.nest(stackSend(0), r.nest(stackWork(0), r.nest(stackOpen(3))))
		}, nil},
		{"a frame that fails does not count", []string{"send", "work(mode == RESUME)", "open(dfd)"}, func(r *rig) func() {
			return r.nest(stackSend(0), r.nest(stackWork(1), r.nest(stackWork(0), r.nest(stackOpen(3)))))
		}, []string{"in send 1<0", "in work 2<1", "in open 3<2", "out send 1<0"}},
		{"an inner predicate fails", []string{"send", "work", "open(dfd == 4)"}, func(r *rig) func() {
			return r.nest(stackSend(0), r.nest(stackWork(1), r.nest(stackOpen(3))))
		}, nil},
		{"a return predicate of the last", []string{"send(dev)", "work(return == 1)"}, func(r *rig) func() {
			return r.nest(stackSend(0), r.nest(stackWork(0)), r.nest(stackWork(1)))
		}, []string{"in send 1<0", "out work 2<1"}},
		{"a return predicate of an outer", []string{"send(dev, return == 5)", "work(mode)"}, func(r *rig) func() {
			return r.nest(stackSend(0), r.nest(stackWork(0)))
		}, []string{"in send 1<0", "in work 2<1"}},
		{"both sides in one condition", []string{"send(dev)", "work(mode) if mode == 1 || return == 5"}, func(r *rig) func() {
			return r.nest(stackSend(0), r.nest(stackWork(0)), r.nest(stackWork(1)))
		}, []string{"in send 1<0", "in work 2<1"}},
		{"one function twice", []string{"work", "work"}, func(r *rig) func() {
			return r.nest(stackWork(1), r.nest(stackWork(2)))
		}, []string{"in work 1<0", "in work 2<1", "out work 2<1", "out work 1<0"}},
		{"one function twice, called once", []string{"work", "work"}, func(r *rig) func() { return r.nest(stackWork(1)) }, nil},
		{"an interrupt", nil, func(r *rig) func() {
			return r.nest(stackSend(0), r.nest(stackWork(1), r.onOtherStack(r.nest(stackOpen(3)))))
		}, nil},
		{"another thread", nil, func(r *rig) func() {
			return r.nest(stackSend(0), r.nest(stackWork(1), func() {
				r.pidtid++
				r.nest(stackOpen(3))()
				r.pidtid--
			}))
		}, nil},
		{"five levels", []string{"send(dev)", "work(mode)", "free", "nothing", "open(dfd)"}, func(r *rig) func() {
			return r.nest(stackSend(0), r.nest(stackWork(1), r.nest(call{fn: "free", args: []uint64{0, 0}},
				r.nest(call{fn: "nothing"}, r.nest(stackOpen(3))))))
		}, []string{"in send 1<0", "in work 2<1", "in free 3<2", "in nothing 4<3", "in open 5<4"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			backEnds(t, func(t *testing.T, f Features) {
				specs := tc.specs
				if specs == nil {
					specs = []string{"send", "work", "open"}
				}
				r := chainRig(t, f, specs...)
				for range 2 { // nothing is left of a run that the next one could trip over
					tc.calls(r)()
					require.Equal(t, tc.want, r.chainShown())
					requireNoCalls(t, r, "all calls have returned")
					r.requireTally()
				}
			})
		})
	}
}

// onOtherStack makes calls where interrupts do.
func (r *rig) onOtherStack(calls func()) func() {
	return func() {
		task := r.stack
		r.stack = r.newStack()
		calls()
		r.stack = task
	}
}
