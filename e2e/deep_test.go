//go:build linux

package e2e

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/runtime"
)

// testNoRoomDeep nests more calls in a thread than it has room for: a file below two
// overlays is opened, of which each of twelve specs sees three calls. A call without room
// counts once, for the event at return, and its entry is shown.
func testNoRoomDeep(t *testing.T, k *kernel, attach compiler.Kind) {
	const opens, depth, specs, slots = 50, 3, 12, 32
	path := filepath.Join(mountOverlay(t), "file")
	each := slices.Repeat([]string{"do_dentry_open(f->f_mode, return, $duration)"}, specs)
	if k.target().Features.ReturnsUnlimited && attach.Multi() {
		require.ErrorContains(t, k.refused(t, attach, each...), "the kernel follows the returns of a function for 8 links")
		return
	}
	session := k.loadUnit(t, k.unit(t, resolve.Wishes{Attach: attach}, compiler.Options{RingBytes: 4 << 20, CountCalls: true}, each...))
	session.Hold()
	_, err := session.Attach()
	require.NoError(t, err)
	require.NoError(t, session.Begin())
	tr := &tracer{session}
	for range opens {
		fd, err := unix.Open(path, unix.O_RDONLY, 0)
		require.NoError(t, err)
		require.NoError(t, unix.Close(fd))
	}
	require.NoError(t, tr.Stop())
	require.NoError(t, tr.Discard())
	counts, err := tr.EventCounts()
	require.NoError(t, err)
	missed, noRoom := tr.missed(t), uint64(0)
	for _, c := range counts {
		t.Logf("%s: %+v", c.Kind, c.Counters)
		if missed > 0 { // by the kernel, which follows few returns
			continue
		}
		require.Equal(t, uint64(opens*depth), c.Matched+c.NoRoom)
		require.Zero(t, c.Unpaired)
		if c.Kind == compiler.EntryEvent {
			require.Zero(t, c.NoRoom)
		}
		noRoom += c.NoRoom
	}
	if missed == 0 {
		require.Equal(t, uint64(opens*(depth*specs-slots)), noRoom)
	}
}

// testInsidePrograms makes calls in interrupts, many of which come while a program runs.
// Each call is in a measure, or is counted by the kernel as skipped, once. By fentry on
// kernels before 5.12 the kernel skips none, and each measure has all calls.
func testInsidePrograms(t *testing.T, k *kernel) {
	f := k.target().Features
	for _, attach := range k.kinds(t) {
		if attach == compiler.Fentry && f.Preemptible {
			continue // kprobes are used instead
		}
		if attach != compiler.Fentry && !*full {
			continue // they skip both sides, which is simple
		}
		t.Run(string(attach), func(t *testing.T) { insidePrograms(t, k, attach, !f.CountsSkipped && attach == compiler.Fentry) })
	}
}

// insidePrograms compares the measures by a kind of attachment, of which all have all
// calls if all is true.
func insidePrograms(t *testing.T, k *kernel, attach compiler.Kind, all bool) {
	run := wake(t)
	session := k.loadMeasured(t, resolve.Wishes{Attach: attach}, compiler.Options{},
		measured{"try_to_wake_up(p->pid)", compiler.Calls}, // keeps nothing, so it has all calls but those that are skipped
		measured{"try_to_wake_up", compiler.Durations},
		measured{"try_to_wake_up(p->pid) if return >= 0", compiler.Values},
		measured{"try_to_wake_up(p->pid, return)", compiler.Values})
	session.Hold()
	_, err := session.Attach()
	require.NoError(t, err)
	tr := &tracer{session}
	missed := func() (sum map[*compiler.Probe]uint64, known bool) {
		all, err := tr.Missed()
		require.NoError(t, err)
		sum, known = map[*compiler.Probe]uint64{}, true
		for _, m := range runtime.MissedOnce(all) {
			sum[m.Probes[0]] += m.N
			known = known && !m.Uncounted
		}
		return sum, known
	}
	held, known := missed()
	require.NoError(t, session.Begin())
	begun, _ := missed()
	run()
	ending, _ := missed()
	measures := tr.measured(t)
	ended, _ := missed()
	least, most := uint64(0), uint64(math.MaxUint64) // what is skipped is not read at the moment at which counting begins and ends
	for _, m := range measures {
		p, seen := m.Probe, m.Matched+m.NoRoom
		t.Logf("%s: %+v, %d to %d skipped", p.Asked, m.Counters, ending[p]-begun[p], ended[p]-held[p])
		least, most = max(least, seen+ending[p]-begun[p]), min(most, seen+ended[p]-held[p])
		if all {
			require.Equal(t, compiler.Counters{Matched: m.Matched}, m.Counters)
			require.Zero(t, ended[p])
		}
	}
	if known {
		require.LessOrEqual(t, least, most)
		require.Greater(t, least, uint64(wakeups()))
	}
}
