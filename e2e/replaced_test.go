//go:build linux

package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

const (
	replacedSize = 4567 // of the reads that fail; those of the new program have one byte more
	replacedEach = 20   // threads of one process
)

// A replacedCall is a call of a process one of whose threads executes a program.
type replacedCall struct {
	spec string
	// check returns what is wrong with a call that is shown.
	check func(t *testing.T, ev *runtime.Event)
	// each is how many of them return in one process.
	each int
}

// erestartsys is the result, inside the kernel, of a call that a signal has interrupted.
const erestartsys = 512

var replacedCalls = []replacedCall{
	{fmt.Sprintf("vfs_read(count >= %d, count <= %d, return, $duration)", replacedSize, replacedSize+1), checkReplacedRead, 2 * replacedEach},
	{fmt.Sprintf("vfs_read(count >= %d, count <= %d, file, $kstack, return)", replacedSize, replacedSize+1), checkReplacedRead, 2 * replacedEach},
	{endless[0], checkReplacedSignal, replacedEach},
	{endless[1], checkReplacedSignal, replacedEach},
	{`begin_new_exec($comm == "victim", $tid, $pid, after($comm), return)`, checkReplacedExec, 1},
	{`begin_new_exec($comm == "victim", $tid, $pid, after($comm), diff(bprm), return)`, checkReplacedExec, 1},
}

func checkReplacedRead(t *testing.T, ev *runtime.Event) {
	want := uint64(replacedSize + 1)
	if number(ev, "count") == replacedSize {
		want = -erestartsys & (1<<64 - 1)
	}
	require.Equal(t, want, number(ev, "return"))
}

func checkReplacedSignal(t *testing.T, ev *runtime.Event) {
	require.Equal(t, uint64(1), number(ev, "return"))
}

// checkReplacedExec checks that both sides are of the thread that has become the first one.
func checkReplacedExec(t *testing.T, ev *runtime.Event) {
	require.Zero(t, number(ev, "return"))
	require.NotEqual(t, number(ev, "$pid"), number(ev, "$tid"))
	require.Equal(t, []uint64{number(ev, "$pid"), number(ev, "$pid")}, []uint64{uint64(ev.PID), uint64(ev.TID)})
	require.Equal(t, "traffic", unix.ByteSliceToString(value(ev, "after($comm)").Data))
}

// testReplaced checks that a process that executes a program in a thread leaves nothing
// behind of the calls of its other threads, and that those of the new program are shown.
func testReplaced(t *testing.T, k *kernel) {
	processes := rounds(5, 100)
	tracers := map[string]*tracer{}
	of := map[string]replacedCall{}
	for _, attach := range k.kinds(t) {
		for _, c := range replacedCalls {
			if !k.accepts(t, attach, c.spec) {
				continue
			}
			name := fmt.Sprintf("%s by %s", c.spec, attach)
			tracers[name], of[name] = k.trace(t, attach, compiler.Options{RingBytes: 16 << 20}, c.spec), c
		}
	}
	for range processes {
		makeTraffic(t, "replaced", "-n", fmt.Sprint(replacedEach), "-size", fmt.Sprint(replacedSize), "victim")
	}
	k.requireForgotten(t)
	for name, tr := range tracers {
		shown := uint64(0)
		tr.events(t, func(ev *runtime.Event) {
			of[name].check(t, ev)
			shown++
		})
		require.Equal(t, compiler.Counters{}, tr.counters(t), name)
		requireFollowed(t, name, uint64(processes*of[name].each), shown, tr.missed(t))
	}
}
