//go:build linux

package e2e

import (
	"encoding/binary"
	"fmt"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/e2e/vm"
	"github.com/ksnoop/ksnoop/runtime"
)

// A workload makes calls whose sides can be distinguished. The first three make
// 200,000 calls together with -full.
type workload struct {
	name    string
	spec    string
	prepare func(t *testing.T) (run func())
	call    func(ev *runtime.Event) (in, out uint64)
	// calls returns the number of calls, by depth of recursion.
	calls func() []int
	// interrupts is set if interrupts make such calls, too, in any number.
	interrupts bool
	// overlap is how many calls must have been under way at once.
	overlap int
}

var workloads = []workload{
	{
		name:    "pipes",
		spec:    "vfs_read(count > 64, file->f_inode->i_ino, after(file->f_inode->i_ino), return, $duration)",
		prepare: readPipes,
		// Each pipe has an inode of its own.
		call: func(ev *runtime.Event) (in, out uint64) {
			return number(ev, "count") + number(ev, "file->f_inode->i_ino")<<16, number(ev, "return") + number(ev, "after(file->f_inode->i_ino)")<<16
		},
		calls:   func() []int { return []int{pipeReaders * pipeRounds()} },
		overlap: pipeReaders - 2,
	},
	{
		name:    "overlay",
		spec:    "do_dentry_open(diff(f), return <= 0, $duration, INODE:x, after(f->f_inode):x)",
		prepare: openOverlay,
		// The file gets the inode, and has had none.
		call: func(ev *runtime.Event) (in, out uint64) {
			before, after := changed(ev, "diff(f)", "f_inode")
			return 2 * ev.Values[1].Uint64(), number(ev, "return") + number(ev, "after(f->f_inode)") + after + before
		},
		calls:   func() []int { return []int{overlayOpens(), overlayOpens(), overlayOpens()} },
		overlap: 3,
	},
	{
		name:    "softirq",
		spec:    "skb_put(len == 1028, skb->head, skb->tail, diff(skb->len), return, after(skb->len), $duration)",
		prepare: ping,
		// skb_put begins where the data ended before, and makes it 1028 bytes longer.
		call: func(ev *runtime.Event) (in, out uint64) {
			d := value(ev, "diff(skb->len)")
			in, out = value(ev, "skb->head").Addr+number(ev, "skb->tail")+2*(d.Was.Uint64()+1028), number(ev, "return")+number(ev, "after(skb->len)")
			return in, out + d.Uint64()
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

// TestPairing runs the workloads on two CPUs, between which their threads move, and
// tests the rate of events there. But for 5.10, the kernels preempt tasks anywhere.
func TestPairing(t *testing.T) {
	onlyWithFull(t)
	t.Parallel()
	for _, suite := range vm.Matrix(vm.AMD64) {
		t.Run(suite.String(), func(t *testing.T) {
			t.Parallel()
			printed := testOn(t, suite.String(), vm.Machine{CPUs: 2, Append: "preempt=full"}, "^TestGuest$/^(pairing|limited|taken)$")
			require.Contains(t, printed, pairingOn(2, suite.String() != "5.10"))
		})
	}
}

// pairingOn returns what testPairing logs of its machine.
func pairingOn(cpus int, preemptible bool) string {
	return fmt.Sprintf("on %d CPUs, preemptible %t", cpus, preemptible)
}

// testPairing checks that no event shows the entry of one call and the return
// of another, and that every call without an event is counted as missed or as
// without room.
func testPairing(t *testing.T, k *kernel) {
	t.Log(pairingOn(goruntime.NumCPU(), k.target().Features.Preemptible))
	for _, attach := range k.kinds(t) {
		for _, w := range workloads {
			t.Run(w.name+"/"+string(attach), func(t *testing.T) { w.test(t, k, attach) })
		}
	}
	t.Run("inside programs", func(t *testing.T) { testInsidePrograms(t, k) })
	t.Run("inside bpf", func(t *testing.T) { testInsideBPF(t, k) })
	if f := k.target().Features; f.KprobeMulti && !f.ReturnsUnlimited {
		t.Run("rejected", func(t *testing.T) { testRejected(t, k) })
	}
}

func (w *workload) test(t *testing.T, k *kernel, attach compiler.Kind) {
	if attach == compiler.Fentry && k.target().Features.Preemptible {
		err := k.refused(t, attach, strings.Replace(w.spec, "INODE:x, ", "", 1))
		require.ErrorContains(t, err, "what is kept from entry to return could be that of another call")
		return
	}
	// Before 6.10, do_dentry_open gets the inode as an argument, and an overlay
	// passes one that is not that of the path.
	text := strings.Replace(w.spec, "INODE", "inode", 1)
	if _, err := k.tryResolve(t, resolve.Wishes{Attach: attach}, text); err != nil {
		text = strings.Replace(w.spec, "INODE", "f->f_path.dentry->d_inode", 1)
	}
	run := w.prepare(t)
	tr := k.trace(t, attach, compiler.Options{RingBytes: 2 * ringBytes}, text) // a diff has two copies of a structure
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
	if !w.interrupts { // in interrupts the kernel may fail to allocate
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
	// A call has no event if one of its sides is missed or cannot be kept.
	require.GreaterOrEqual(t, len(calls)+int(missed+counters.NoRoom), made)
}

// thread returns the thread of an event. For an idle thread it returns the negated
// number of the CPU: every CPU has its own, and all of them have the number 0.
func thread(ev *runtime.Event) int {
	if ev.TID == 0 {
		return -ev.CPU
	}
	return int(ev.TID)
}

// value returns the item of an event with the given name.
func value(ev *runtime.Event, name string) *runtime.Value {
	for i := range ev.Values {
		if ev.Values[i].Name == name {
			return &ev.Values[i]
		}
	}
	panic("no item " + name)
}

// changed returns the values of a member before and after the call, or 1 twice if it is
// not among those that differ. The member has at least 8 bytes.
func changed(ev *runtime.Event, name, member string) (before, after uint64) {
	v := value(ev, name)
	if v.Was.Fault != compiler.NoFault || v.Fault != compiler.NoFault {
		return 1, 1
	}
	for _, c := range btfdump.Changes(v.DataType(), v.Was.Data, v.Data) {
		if c.Member == member {
			return binary.LittleEndian.Uint64(c.Before), binary.LittleEndian.Uint64(c.After)
		}
	}
	return 1, 1
}

// number returns the value of a scalar item. It returns a number that no test
// expects if the value could not be read.
func number(ev *runtime.Event, name string) uint64 {
	v := value(ev, name)
	if v.Fault != compiler.NoFault {
		return ^uint64(0)
	}
	var b [8]byte
	copy(b[:], v.Data)
	return binary.LittleEndian.Uint64(b[:])
}
