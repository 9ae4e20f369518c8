//go:build linux

package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/codegen"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
	"github.com/ksnoop/ksnoop/runtime"
)

// asTyped lists specs as a user types them first, without conditions that keep calls of
// others out. shown is a point that must have events, at least as many as each says.
var asTyped = []struct {
	specs []string
	chain bool
	shown string
	each  int
}{
	{[]string{"ksys_read", "tp:sched_switch"}, true, "sched_switch", asTypedCalls},
	{[]string{"vfs_read", "rw_verify_area", "tp:sys_exit"}, true, "", 0}, // no system call ends inside of rw_verify_area
	{[]string{"get_signal", "do_exit"}, true, "do_exit", asTypedCalls},
	{[]string{"vfs_read((s32)file != 2)"}, false, "vfs_read", asTypedCalls},
	{[]string{"vfs_read(file:s32)"}, false, "vfs_read", asTypedCalls},
	{[]string{"vfs_read((u16)file)"}, false, "vfs_read", asTypedCalls},
	{[]string{"vfs_read((s8)file)"}, false, "vfs_read", asTypedCalls},
	{[]string{"tp:sched_switch((s32)prev != 2)"}, false, "sched_switch", asTypedCalls},
	{[]string{"p vfs_read n=$arg1:s32 if n != 2"}, false, "vfs_read", asTypedCalls},
}

// asTypedCalls is how many threads wait in a read, and how many are killed.
const asTypedCalls = 5

// testAsTyped checks that each of asTyped is attached whole in every kind, and shows the
// calls that the kernel does not miss.
func testAsTyped(t *testing.T, k *kernel) {
	f := k.target().Features
	for _, attach := range k.twoKinds(t) {
		for _, s := range asTyped {
			if s.chain && (attach == compiler.Fentry && f.Preemptible || attach == compiler.KprobeMulti && !f.ReturnsUnlimited) {
				continue // refused, see testChain
			}
			t.Run(fmt.Sprintf("%s/%v", attach, s.specs), func(t *testing.T) {
				tr := k.attachAsTyped(t, resolve.Wishes{Attach: attach, Chain: s.chain}, s.specs)
				makeTraffic(t, "blocked", "-n", fmt.Sprint(asTypedCalls))
				makeTraffic(t, "killed", "-n", fmt.Sprint(asTypedCalls), "victim")
				if tr.Unit().Collection.Maps["threads"] != nil {
					k.requireForgotten(t)
				}
				shown := map[string]int{}
				tr.events(t, func(ev *runtime.Event) { shown[ev.Probe.Func.Name]++ })
				if s.shown == "" {
					require.Empty(t, shown)
				} else {
					require.NotZero(t, shown[s.shown])
					require.GreaterOrEqual(t, shown[s.shown]+int(tr.missed(t)), s.each, "%v", shown) // the kernel follows few calls at once
				}
				c := tr.counters(t)
				require.Equal(t, []uint64{0, 0}, []uint64{c.Lost, c.NoRoom})
			})
		}
	}
}

// attachAsTyped attaches specs, or a line of kprobe_events, of which nothing may be left
// out.
func (k *kernel) attachAsTyped(t *testing.T, w resolve.Wishes, specs []string) *tracer {
	var traces []*spec.Trace
	for _, text := range specs {
		trace, err := kprobe.ParseAny(text)
		require.NoError(t, err)
		traces = append(traces, trace)
	}
	plan, err := resolve.All(traces, k.target(), w)
	require.NoError(t, err)
	require.Len(t, plan.Probes, len(specs))
	unit, err := codegen.Compile(plan.Probes, compiler.Options{RingBytes: ringBytes, Self: uint32(unix.Getpid())})
	require.NoError(t, err)
	session := k.loadUnit(t, unit) // which refuses nothing
	n, err := session.Attach()
	require.NoError(t, err)
	require.Equal(t, len(specs), n)
	return &tracer{session}
}
