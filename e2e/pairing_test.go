//go:build linux

package e2e

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/e2e/vm"
	"github.com/ksnoop/ksnoop/runtime"
)

// A workload makes calls whose sides can be told apart. The first three make
// 200,000 calls together with -full.
type workload struct {
	name    string
	spec    string
	prepare func(t *testing.T) (run func())
	call    func(ev *runtime.Event) (in, out uint64)
	// calls is how many are made, at the depths of recursion.
	calls func() []int
	// interrupts make such calls, too, as many as they like.
	interrupts bool
	// overlap is how many calls must have been under way at once.
	overlap int
}

var workloads = []workload{
	{
		name:    "pipes",
		spec:    "vfs_read(count > 64, file->f_inode->i_ino, return, $duration)",
		prepare: readPipes,
		call:    func(ev *runtime.Event) (in, out uint64) { return number(ev, "count"), number(ev, "return") },
		calls:   func() []int { return []int{pipeReaders * pipeRounds()} },
		overlap: pipeReaders - 2,
	},
	{
		name:    "overlay",
		spec:    "do_dentry_open(f, return <= 0, $duration)",
		prepare: openOverlay,
		call:    func(ev *runtime.Event) (in, out uint64) { return 0, number(ev, "return") },
		calls:   func() []int { return []int{overlayOpens(), overlayOpens(), overlayOpens()} },
		overlap: 3,
	},
	{
		name:    "softirq",
		spec:    "skb_put(len == 1028, skb->head, skb->tail, return, $duration)",
		prepare: ping,
		// What is put begins where the data ended before.
		call: func(ev *runtime.Event) (in, out uint64) {
			return value(ev, "skb->head").Addr + number(ev, "skb->tail"), number(ev, "return")
		},
		calls:   func() []int { return []int{2 * pings()} },
		overlap: 1,
	},
	{
		name:    "interrupts",
		spec:    "try_to_wake_up(p->pid, return >= 0, $duration)",
		prepare: wake,
		call:    func(ev *runtime.Event) (in, out uint64) { return 0, 0 },
		calls:   func() []int { return []int{wakeups()} },
		overlap: 2, interrupts: true,
	},
}

// TestPairing runs the workloads on two CPUs, between which their threads move.
func TestPairing(t *testing.T) {
	testOne(t, vm.Machine{CPUs: 2}, "^TestGuest$/^pairing$")
}

// testPairing: no event shows the entry of one call and the return of another,
// and every call without an event is accounted for.
func testPairing(t *testing.T, k *kernel) {
	for _, attach := range k.kinds(t) {
		for _, w := range workloads {
			t.Run(w.name+"/"+string(attach), func(t *testing.T) { w.test(t, k, attach) })
		}
	}
}

func (w *workload) test(t *testing.T, k *kernel, attach compiler.Kind) {
	if attach == compiler.Fentry && k.target().Features.Preemptible {
		err := k.refused(t, attach, w.spec)
		require.ErrorContains(t, err, "what is kept from entry to return could be that of another call")
		return
	}
	run := w.prepare(t)
	tr := k.trace(t, attach, compiler.Options{}, w.spec)
	run()
	var calls []call
	tr.events(t, func(ev *runtime.Event) {
		in, out := w.call(ev)
		calls = append(calls, call{thread(ev), ev.Call, ev.Start, ev.Time, in, out})
	})
	counters, missed := tr.counters(t), tr.missed(t)
	depths, err := checkCalls(calls)
	require.NoError(t, err)
	t.Logf("%d calls, %v by depth, %d at once; %d missed, %+v", len(calls), depths, overlap(calls), missed, counters)
	require.Zero(t, counters.Lost)
	if !w.interrupts { // where the kernel allocates nothing at times
		require.Zero(t, counters.NoRoom)
	}
	if missed == 0 {
		require.GreaterOrEqual(t, overlap(calls), w.overlap)
	}
	if missed == 0 && !w.interrupts {
		require.Equal(t, w.calls(), depths)
	}
	made := 0
	for _, n := range w.calls() {
		made += n
	}
	// A call has no event if one of its sides is missed, or cannot be kept.
	require.GreaterOrEqual(t, len(calls)+int(missed+counters.NoRoom), made)
}

// thread is the thread of an event. Every CPU has its own idle thread, and all
// of those have the number 0.
func thread(ev *runtime.Event) int {
	if ev.TID == 0 {
		return -ev.CPU
	}
	return int(ev.TID)
}

// value is the item of an event with the name.
func value(ev *runtime.Event, name string) *runtime.Value {
	for i := range ev.Values {
		if ev.Values[i].Name == name {
			return &ev.Values[i]
		}
	}
	panic("no item " + name)
}

// number is the value of a scalar item. One that could not be read is none
// that a test expects.
func number(ev *runtime.Event, name string) uint64 {
	v := value(ev, name)
	if v.Fault != compiler.NoFault {
		return ^uint64(0)
	}
	var b [8]byte
	copy(b[:], v.Data)
	return binary.LittleEndian.Uint64(b[:])
}
