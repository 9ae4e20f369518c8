package codegen

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
)

// chainRig returns a rig for a chain of specs.
func chainRig(t *testing.T, f compiler.Features, specs ...string) *rig {
	return newRigOf(t, f, compiler.Options{CountCalls: true}, resolve.Wishes{Chain: true}, specs...)
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

// nest returns a function that makes a call: it enters it, makes its inner
// calls, and returns from it.
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
	r.shownOf = map[*compiler.EventType]uint64{}
	for _, rec := range r.records {
		ev := r.unit.Events[binary.LittleEndian.Uint32(rec[compiler.HeaderEvent:])]
		id, caller := word(rec[compiler.HeaderCall:][:8]), word(rec[ev.Layout.Caller:][:8])
		if _, ok := calls[id]; !ok {
			calls[id] = len(calls)
		}
		r.shownOf[ev]++
		kind := map[compiler.EventKind]string{compiler.EntryEvent: "in", compiler.ReturnEvent: "out"}[ev.Kind]
		lines = append(lines, fmt.Sprintf("%s %s %d<%d", kind, ev.Probe.Func.Name, calls[id], calls[caller]))
	}
	r.records = nil
	return lines
}

// requireCounts checks that each call counts once for every event of its
// function.
func (r *rig) requireCounts() {
	r.t.Helper()
	for i, ev := range r.unit.Events {
		c := r.counters(i)
		r.wanted[i].Matched += r.shownOf[ev]
		r.wanted[i].Filtered += r.entered[ev.Probe.Func.Name] - r.shownOf[ev]
		require.Equal(r.t, *r.wanted[i], c, "event %d", i)
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
			return r.nest(stackSend(0), r.nest(stackWork(1), r.inOtherThread(r.nest(stackOpen(3)))))
		}, nil},
		{"five levels", []string{"send(dev)", "work(mode)", "free", "nothing", "open(dfd)"}, func(r *rig) func() {
			return r.nest(stackSend(0), r.nest(stackWork(1), r.nest(call{fn: "free", args: []uint64{0, 0}},
				r.nest(call{fn: "nothing"}, r.nest(stackOpen(3))))))
		}, []string{"in send 1<0", "in work 2<1", "in free 3<2", "in nothing 4<3", "in open 5<4"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			backEnds(t, func(t *testing.T, f compiler.Features) {
				specs := tc.specs
				if specs == nil {
					specs = []string{"send", "work", "open"}
				}
				r := chainRig(t, f, specs...)
				for range 2 { // the first run leaves nothing behind that affects the second
					tc.calls(r)()
					require.Equal(t, tc.want, r.chainShown())
					requireNoCalls(t, r, "all calls have returned")
					r.requireCounts()
				}
			})
		})
	}
}

// onOtherStack returns a function that makes calls on the stack of interrupts.
func (r *rig) onOtherStack(calls func()) func() {
	return func() {
		task := r.stack
		r.stack = r.newStack()
		calls()
		r.stack = task
	}
}

// Losses are counted for the side that is lost.
func TestChainLosses(t *testing.T) {
	backEnds(t, func(t *testing.T, f compiler.Features) {
		r := chainRig(t, f, "send(dev, return)", "work(mode, return)", "open(dfd, return)")
		r.full = true
		r.nest(stackSend(0), r.nest(stackWork(1), r.nest(stackOpen(3))))()
		r.full = false
		r.nest(stackSend(0), r.nest(stackWork(1), r.nest(stackOpen(3), func() { r.full = true })))()
		require.Len(t, r.chainShown(), 3)
		for i, ev := range r.unit.Events {
			want := compiler.Counters{Matched: 2, Lost: 1}
			if ev.Kind == compiler.ReturnEvent {
				want.Lost = 2
			}
			require.Equal(t, want, r.counters(i), "event %d", i)
		}
		requireNoCalls(t, r, "all calls have returned")
	})
}

// A call that does not return can be the last one of a chain.
func TestChainWithoutReturn(t *testing.T) {
	for _, last := range []struct {
		spec string
		call call
	}{
		{"do_exit", call{fn: "do_exit", args: []uint64{1}}},
		{"tp:tick(cpu)", call{fn: "tick", args: []uint64{5, 0}}},
	} {
		for _, large := range []string{"work(mode)", "work(mode, $kstack, $comm)"} {
			backEnds(t, func(t *testing.T, f compiler.Features) {
				r := chainRig(t, f, "send", large, last.spec)
				r.nest(stackSend(0), r.nest(stackWork(1), func() { r.enter(last.call) }))()
				require.Equal(t, []string{"in send 1<0", "in work 2<1", "in " + last.call.fn + " 3<2", "out send 1<0"}, r.chainShown(), large)
				requireNoCalls(t, r, large)
			})
		}
	}
}

// If threads end inside the calls of a chain, nothing of them is kept, whatever their
// size.
func TestChainExitInside(t *testing.T) {
	for _, large := range []string{"work(mode)", "work(mode, $kstack, $comm)"} {
		backEnds(t, func(t *testing.T, f compiler.Features) {
			r := chainRig(t, f, "send", large, "open(dfd)")
			for range 40 {
				r.enter(stackSend(0))
				r.enter(stackWork(1))
				r.enter(stackOpen(3))
				require.Equal(t, []string{"in send 1<0", "in work 2<1", "in open 3<2"}, r.chainShown())
				r.again()
				r.requireNothing()
				r.nest(stackWork(1), r.nest(stackOpen(3)))()
				require.Empty(t, r.chainShown())
			}
		})
	}
}
