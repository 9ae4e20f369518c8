package codegen

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
)

// Each kind of event of each function has its own bound in each second. Events beyond
// it are counted as limited.
func TestRate(t *testing.T) {
	spanEnds(t, func(t *testing.T, f compiler.Features) {
		f.CPUs = 4
		r := newRig(t, f, compiler.Options{CountCalls: true, Rate: 3}, "read(count, return)", "send(buf:u64 == 1, return == 0)", "open(dfd == 7)")
		r.time = 5*second - 10
		read := func(n int) {
			for i := range n {
				r.cpu = uint32(i % 4)
				r.do(call{fn: "read", args: []uint64{0, 0, uint64(i), 0}, result: []uint64{9}})
			}
		}
		read(5)
		require.Equal(t, []string{"entry count=0", "return return=9", "entry count=1", "return return=9", "entry count=2", "return return=9"}, r.shown())
		r.records = nil

		// Calls that do not match take no part. The other functions have had none.
		for i := range uint64(8) {
			r.do(call{fn: "send", args: []uint64{0, i & 1}, result: []uint64{i & 2}})
			r.do(call{fn: "open", args: []uint64{7, 0}})
		}
		require.Equal(t, []string{"entry dfd=7", "call buf=1 return=0", "entry dfd=7", "entry dfd=7", "call buf=1 return=0"}, r.shown())
		r.records = nil

		r.time += 10
		read(1)
		require.Len(t, r.shown(), 2)
		r.time += 3 * second
		r.records = nil
		read(7)
		require.Len(t, r.shown(), 6)
		for _, side := range []int{0, 1} {
			require.Equal(t, compiler.Counters{Matched: 13, Limited: 6}, r.counters(side))
		}
		require.Equal(t, compiler.Counters{Filtered: 6, Matched: 2}, r.counters(2))
		require.Equal(t, compiler.Counters{Matched: 8, Limited: 5}, r.counters(3))
		requireNoCalls(t, r, "all calls have returned")
		require.Empty(t, r.hashes[rateLocks])
	})
}

// A program that has read the clock before another one began the next second asks in
// that one, whose number never becomes that of an earlier second.
func TestRateLate(t *testing.T) {
	spanEnds(t, func(t *testing.T, f compiler.Features) {
		r := newRig(t, f, compiler.Options{Rate: 2}, "read(count)")
		for _, at := range []uint64{9 * second, 8 * second, 9 * second, 7*second + 5, 10 * second} {
			r.time = at
			r.do(call{fn: "read", args: []uint64{0, 0, at, 0}})
		}
		require.Equal(t, []string{"entry count=9000000000", "entry count=8000000000", "entry count=10000000000"}, r.shown())
		require.Equal(t, compiler.Counters{Limited: 2}, r.counters(0))
		require.Equal(t, uint64(10<<32|1), r.word(r.unit.Counters.At(0, 0)+compiler.CounterSecond.Offset()))
	})
}

// If a program has to give up because another one is asking, its event is counted as
// limited.
func TestRateLocked(t *testing.T) {
	backEnds(t, func(t *testing.T, f compiler.Features) {
		f.CompareExchange = false
		r := newRig(t, f, compiler.Options{Rate: 5}, "read(count)", "send(buf:u64)")
		r.hashes[rateLocks] = map[string]uint64{string(le(uint32(0))): r.alloc(make([]byte, 4))}
		r.do(call{fn: "read", args: []uint64{0, 0, 1, 0}})
		r.do(call{fn: "send", args: []uint64{0, 1}})
		require.Equal(t, []string{"entry buf=1"}, r.shown())
		require.Equal(t, compiler.Counters{Limited: 1}, r.counters(0))
	})
}

// The rate of a chain is that of its last calls. The calls around them are shown with
// them.
func TestRateOfChain(t *testing.T) {
	for _, last := range []string{"open(dfd)", "open(dfd, return)", "open(return)", "open(dfd, return == 0)"} {
		spanEnds(t, func(t *testing.T, f compiler.Features) {
			r := newRigOf(t, f, compiler.Options{CountCalls: true, Rate: 2}, resolve.Wishes{Chain: true}, "send", "work(mode)", last)
			r.time = second
			r.nest(stackSend(0), r.nest(stackWork(1), r.nest(stackOpen(3)), r.nest(stackOpen(4)), r.nest(stackOpen(5))))()
			r.nest(stackSend(0), r.nest(stackWork(1), r.nest(stackOpen(3))))()
			shown := map[string]int{}
			for _, line := range r.chainShown() {
				shown[line[:len(line)-4]]++
			}
			require.Equal(t, 1, shown["in send"], "%s: %v", last, shown)
			require.Equal(t, 1, shown["in work"])
			open := 0
			for i, ev := range r.unit.Events {
				if ev.Probe.Func.Name != "open" {
					continue
				}
				require.Equal(t, compiler.Counters{Matched: 4, Limited: 2}, r.counters(i), "%s", last)
				open++
			}
			require.Equal(t, 2*open, shown["in open"]+shown["out open"], "%s: %v", last, shown)
			requireNoCalls(t, r, last)

			r.time += second
			r.nest(stackSend(0), r.nest(stackWork(1), r.nest(stackOpen(6))))()
			require.NotEmpty(t, r.chainShown())
		})
	}
}

// The rate of a span is that of its ends: beginnings are not events.
func TestRateOfSpan(t *testing.T) {
	spanEnds(t, func(t *testing.T, f compiler.Features) {
		r := newRig(t, f, compiler.Options{CountCalls: true, Rate: 2}, "send(dev:u64) => free(data) on buf")
		for i := range uint64(5) {
			r.do(call{fn: "send", args: []uint64{i, 100 + i}})
			r.do(call{fn: "free", args: []uint64{100 + i, i}})
		}
		require.Equal(t, []string{" dev=0 data=0", " dev=1 data=1"}, r.shown())
		require.Equal(t, compiler.Counters{Matched: 5}, r.counters(0))
		require.Equal(t, compiler.Counters{Matched: 5, Limited: 3}, r.counters(1))
	})
}
