//go:build linux

package e2e

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// chainSpecs is a chain of one function that calls itself twice, as when an
// overlay on an overlay opens a file.
var chainSpecs = []string{"do_dentry_open(return)", "do_dentry_open(f->f_mode)", "do_dentry_open(f->f_mode, return)"}

// testChain checks that in a chain of one recursive function every call belongs
// to one level and has the right caller, and that threads that make the same
// calls do not mix.
func testChain(t *testing.T, k *kernel) {
	for _, attach := range k.kinds(t) {
		f := k.target().Features
		if attach == compiler.Fentry && f.Preemptible || attach == compiler.KprobeMulti && !f.ReturnsUnlimited {
			continue // refused: the kernel skips entries without returns, or returns without entries
		}
		t.Run(string(attach), func(t *testing.T) { testRecursiveChain(t, k, attach) })
		t.Run("losses/"+string(attach), func(t *testing.T) { testChainLosses(t, k, attach) })
	}
}

// testChainLosses checks, with a ring buffer of one page, that each match on a
// side of a level is delivered, or counted as lost for that side.
func testChainLosses(t *testing.T, k *kernel, attach compiler.Kind) {
	random := rand.New(rand.NewPCG(3, 4))
	lists := []string{"(count)", "(return)", "(count, return)", "(count <= 40, return)", "(count > 20)", "(return > 30)", "(count, $comm, return)"}
	for range rounds(2, 20) {
		var specs []string
		for _, fn := range []string{"ksys_read", "vfs_read", "rw_verify_area"} {
			list := lists[random.IntN(len(lists))]
			if fn == "rw_verify_area" { // returns 0
				list = strings.ReplaceAll(list, "return > 30", "return == 0")
			}
			specs = append(specs, fn+list)
		}
		tr := k.traceAs(t, resolve.Wishes{Attach: attach, Chain: true}, compiler.Options{CountCalls: true, RingBytes: 4096}, specs...)
		threads(t, 4, func(i int) error {
			zero, err := unix.Open("/dev/zero", unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			defer unix.Close(zero)
			for n := range rounds(200, 1000) {
				if _, err := unix.Read(zero, make([]byte, 1+n%60)); err != nil {
					return err
				}
			}
			return nil
		})
		delivered := map[int]uint64{}
		tr.events(t, func(ev *runtime.Event) { delivered[ev.EventType.Number]++ })
		all, err := tr.EventCounts()
		require.NoError(t, err)
		lost := uint64(0)
		for _, counts := range all {
			c := counts.Counters
			require.Equal(t, delivered[counts.Number], counts.Delivered)
			require.Equal(t, c.Matched, counts.Delivered+counts.Unread+c.Lost, "%v: %s at %v: %+v", specs, counts.Probe.Func.Name, counts.Kind, c)
			lost += c.Lost
		}
		require.NotZero(t, lost, "%v", specs)
		require.NoError(t, tr.Close())
	}
}

func testRecursiveChain(t *testing.T, k *kernel, attach compiler.Kind) {
	open := openOverlay(t)
	tr := k.traceAs(t, resolve.Wishes{Attach: attach, Chain: true}, compiler.Options{}, chainSpecs...)
	open()
	events, orphans := map[string]int{}, 0
	inside := map[int]map[uint64]int{} // the level of the calls under way, by thread and id
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
	if missed > 0 { // the kernel follows few calls at once
		require.LessOrEqual(t, orphans, missed)
		for _, event := range []string{"return outer", "entry middle", "entry inner", "return inner"} {
			require.LessOrEqual(t, events[event], overlayOpens(), event)
			require.GreaterOrEqual(t, events[event]+missed, overlayOpens(), event)
		}
		return
	}
	require.Zero(t, orphans)
	require.Equal(t, map[string]int{
		"return outer": overlayOpens(), "entry middle": overlayOpens(),
		"entry inner": overlayOpens(), "return inner": overlayOpens(),
	}, events)
}
