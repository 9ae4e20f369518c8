package codegen

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
)

// Every CPU has its own slot for each event, if there are not too many.
func TestCounterLayout(t *testing.T) {
	for _, tc := range []struct {
		events, cpus, slots, size int
	}{
		{1, 0, 1, 64 + 64},
		{1, 1, 1, 64 + 64},
		{3, 2, 2, 64 + 3*2*64},
		{3, 5, 8, 64 + 3*8*64},
		{1023, 64, 64, 64 + 1023*64*64},
		{1024, 64, 32, 64 + 1024*32*64},
		{32768, 8192, 1, 64 + 32768*64},
		{65535, 2, 1, 64 + 65535*64},
	} {
		l, err := newCounterLayout(tc.events, tc.cpus)
		require.NoError(t, err)
		require.Equal(t, compiler.CounterLayout{Events: tc.events, Slots: tc.slots}, l)
		require.Equal(t, uint32(tc.size), l.Map().ValueSize)
		require.LessOrEqual(t, tc.size, compiler.MostCounters)
	}
	_, err := newCounterLayout(65536, 2)
	require.EqualError(t, err, "65536 kinds of events would be counted, and 65535 is the limit: name fewer functions")
}

// A call counts in the slot of its CPU, and all slots of its event are read.
func TestCountersOfCPUs(t *testing.T) {
	backEnds(t, func(t *testing.T, f compiler.Features) {
		f.CPUs = 6
		r := newRig(t, f, compiler.Options{CountCalls: true}, "read(count == 5)", "read(count == 7, return)", "send(buf)")
		for cpu := range uint32(20) { // more CPUs than slots: some share a slot
			r.cpu = cpu
			r.do(call{args: []uint64{0, 0, 5, 0}, result: []uint64{0}})
		}
		require.Equal(t, compiler.Counters{Matched: 20}, r.counters(0))
		require.Equal(t, compiler.Counters{Filtered: 20}, r.counters(1))
		require.Equal(t, compiler.Counters{}, r.counters(2))
		require.Equal(t, uint64(3), r.word(r.unit.Counters.At(0, 1)+compiler.CounterMatched.Offset()))
		require.Equal(t, uint64(2), r.word(r.unit.Counters.At(1, 7)+compiler.CounterFiltered.Offset()))
	})
}
