//go:build linux

package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// chainSpecs is a function inside of itself, twice: as an overlay on an overlay
// opens a file.
var chainSpecs = []string{"do_dentry_open(return)", "do_dentry_open(f->f_mode)", "do_dentry_open(f->f_mode, return)"}

// testChain: in a stack of one recursive function every call is of one level,
// and knows its caller; threads that do the same do not mix.
func testChain(t *testing.T, k *kernel) {
	for _, attach := range k.kinds(t) {
		f := k.target().Features
		if attach == compiler.Fentry && f.Preemptible || attach == compiler.KprobeMulti && !f.ReturnsUnlimited {
			continue // refused: the kernel skips entries without returns, or the other way round
		}
		t.Run(string(attach), func(t *testing.T) { testRecursiveChain(t, k, attach) })
	}
}

func testRecursiveChain(t *testing.T, k *kernel, attach compiler.Kind) {
	open := openOverlay(t)
	tr := k.traceAs(t, compiler.Wishes{Attach: attach, Stack: true}, compiler.Options{}, chainSpecs...)
	open()
	events, orphans := map[string]int{}, 0
	inside := map[int]map[uint64]int{} // calls under way, by thread and id: their level
	tr.events(t, func(ev *runtime.Event) {
		level := ev.Probe.Chain.Level
		calls := inside[thread(ev)]
		if calls == nil {
			calls = map[uint64]int{}
			inside[thread(ev)] = calls
		}
		if ev.Kind == compiler.EntryEvent {
			calls[ev.Call] = level
		} else {
			delete(calls, ev.Call)
		}
		if outer, ok := calls[ev.Caller]; level == 2 && (!ok || outer != 1) {
			orphans++
		}
		events[map[compiler.EventKind]string{compiler.EntryEvent: "entry", compiler.ReturnEvent: "return"}[ev.Kind]+
			[]string{" outer", " middle", " inner"}[level]]++
	})
	missed := int(tr.missed(t))
	t.Logf("%v, %d missed, %+v", events, missed, tr.counters(t))
	require.Zero(t, tr.counters(t).Lost)
	if missed > 0 {
		return // the kernel follows few calls at once here: nothing more is promised
	}
	require.Zero(t, orphans)
	require.Equal(t, map[string]int{
		"return outer": overlayOpens(), "entry middle": overlayOpens(),
		"entry inner": overlayOpens(), "return inner": overlayOpens(),
	}, events)
}
