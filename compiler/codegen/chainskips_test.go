package codegen

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
)

// chainsSeen is what the records of a busy CPU say of a chain of two functions.
type chainsSeen struct {
	*busyCPU
	shown, returned map[*skippable]bool
	falsely         int // inner calls shown inside of calls that had ended
}

// skips reports whether the kernel skipped a side of a call.
func (c *skippable) skips(side int) bool { return len(c.skipped[side]) > 0 }

// certain reports whether the call was under way for ksnoop, too.
func (c outerCall) certain() bool { return c.between && !c.skips(0) && !c.skips(1) }

// readChains requires that records have the values of one call, and that each comes once.
func readChains(t *testing.T, c *busyCPU) *chainsSeen {
	s := &chainsSeen{c, map[*skippable]bool{}, map[*skippable]bool{}, 0}
	for _, rec := range c.records {
		ev := c.unit.Events[binary.LittleEndian.Uint32(rec[compiler.HeaderEvent:])]
		number := uint32(word(rec[ev.Layout.Slot(0, len(rec)).Off:][:8]))
		require.NotZero(t, number, "a record without its values")
		call := c.all[number-1]
		require.Equal(t, ev.Probe.Func.Name, call.fn)
		require.Equal(t, call.frame, word(rec[compiler.HeaderCall:][:8])&^(stackFrame-1))
		if ev.Kind == compiler.ReturnEvent {
			require.False(t, s.returned[call], "a return shown twice")
			s.returned[call] = true
			require.True(t, s.shown[call] || call.skips(0), "a return without its entry")
			continue
		}
		require.False(t, s.shown[call], "an entry shown twice")
		s.shown[call] = true
		if ev.Probe.Chain.Level > 0 {
			s.requireInside(t, call, word(rec[ev.Layout.Caller:][:8])&^(stackFrame-1))
		}
	}
	return s
}

// requireInside requires that a call was made inside the one with this frame, or that the
// kernel has skipped the return of that.
func (s *chainsSeen) requireInside(t *testing.T, call *skippable, frame uint64) {
	for _, outer := range slices.Backward(call.inside) {
		if outer.fn != "work" {
			continue
		}
		if outer.frame == frame {
			return
		}
		if outer.certain() {
			break
		}
	}
	s.falsely++
	require.True(t, slices.ContainsFunc(s.all[:call.number], func(c *skippable) bool {
		return c.fn == "work" && c.frame == frame && c.skips(1)
	}), "call %d is not inside", call.number)
}

// Whatever interrupts come, each call of a chain is shown once, with its own values, and
// with its entry. It is shown inside of a call that has ended only where the kernel has
// skipped the return of that.
func TestSkippedInChains(t *testing.T) {
	const runs, calls = 12, 300
	open := func(number uint64) call { return call{fn: "open", args: []uint64{number, 0}, result: []uint64{number}} }
	chains := [][]string{
		{"work(mode, return)", "open(dfd, return)"}, {"work(mode, $kstack, return)", "open(dfd, return)"},
		{"work(mode, return)", "open(dfd, $kstack, return != 0)"},
	}
	backEnds(t, func(t *testing.T, f compiler.Features) {
		made, shown, falsely := 0, 0, 0
		for seed := range uint64(runs) {
			r := newRigOf(t, f, compiler.Options{}, resolve.Wishes{Chain: true}, chains[seed%uint64(len(chains))]...)
			c := newBusyCPU(r, f.CountsSkipped, seed, stackWork, open)
			c.run(calls)
			s := readChains(t, c)
			for _, call := range c.all {
				if call.fn == "open" && !call.skips(0) && !call.skips(1) && slices.ContainsFunc(call.inside, func(c outerCall) bool { return c.fn == "work" && c.certain() }) {
					require.True(t, s.shown[call] && s.returned[call], "call %d is not shown", call.number)
				}
			}
			made, shown, falsely = made+len(c.all), shown+len(s.shown), falsely+s.falsely
		}
		t.Logf("of %d calls, %d were shown, and %d as inside of one that had ended", made, shown, falsely)
		require.Greater(t, shown, made/100)
		if !f.CountsSkipped {
			require.Zero(t, falsely)
		}
	})
}
