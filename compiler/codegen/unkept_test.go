package codegen

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
)

// A call that finds no room counts once: at its return, which shows nothing, and as
// without room. A return whose entry was missed counts as unpaired, also after it.
func TestNoRoomCountsOnce(t *testing.T) {
	for _, tc := range []struct {
		spec   string
		events int // the last one is that of the return
		opts   compiler.Options
	}{
		{"read(buf->len, return, $duration)", 2, compiler.Options{}},
		{"read(buf->len, return, $duration)", 2, compiler.Options{CountCalls: true}},
		{"read(buf->len, return < 5, $duration)", 1, compiler.Options{}},
		{"read(buf->len, return < 5, $duration)", 1, compiler.Options{CountCalls: true}},
		{"read(buf, ubuf:ustring, return, $duration > 0)", 1, compiler.Options{MaxBytes: 300}},
	} {
		t.Run(tc.spec, func(t *testing.T) {
			backEnds(t, func(t *testing.T, f compiler.Features) {
				r := newRig(t, f, tc.opts, tc.spec)
				buf, _ := bufAndDev(r.machine)
				r.stack.bytes = make([]byte, 1<<20)
				r.stack.addr = (r.next + 1<<20) &^ (1<<20 - 1)
				r.put(r.stack.addr, r.stack.bytes)
				r.next = r.stack.addr + 1<<21
				const more = 4
				var leave []func()
				for i := range r.unit.threads.slots + more {
					leave = append(leave, r.enter(call{args: []uint64{buf, 0, uint64(i), 0}, result: []uint64{uint64(i % 10)}}))
				}
				for i := len(leave) - 1; i >= 0; i-- {
					leave[i]()
				}
				require.Zero(t, r.keptCalls())
				requireLosses := func(unpaired uint64) {
					t.Helper()
					for i := range tc.events {
						c, want := r.counters(i), compiler.Counters{}
						if i == tc.events-1 {
							want = compiler.Counters{NoRoom: more, Unpaired: unpaired}
						}
						require.Equal(t, want, compiler.Counters{NoRoom: c.NoRoom, Unpaired: c.Unpaired}, "event %d", i)
					}
				}
				requireLosses(0)
				for n := range uint64(2) {
					leave := r.enter(call{args: []uint64{buf, 0, 1, 0}, result: []uint64{1}})
					for at := 0; at < len(r.threadsOf()); at += r.unit.threads.size() {
						for slot := range r.unit.threads.slots { // as if the entry had been missed
							binary.LittleEndian.PutUint64(r.threadsOf()[at+elementSlots+slot*r.unit.threads.slot:], 0)
						}
					}
					leave()
					requireLosses(n + 1)
				}
				r.free(r.task)
			})
		})
	}
}

// threadsOf returns the memory of the threads that have a bucket.
func (r *rig) threadsOf() []byte {
	buckets, err := r.at(r.arrays[threadsMap], uint64(r.maps[threadsMap].ValueSize))
	require.NoError(r.t, err)
	return buckets
}
