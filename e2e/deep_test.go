//go:build linux

package e2e

import (
	"math"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
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

// testInsideBPF makes calls inside of bpf(2), which each kind of kprobes skips: each call
// is missed once, and none is in a measure.
func testInsideBPF(t *testing.T, k *kernel) {
	const calls = 100
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	require.NoError(t, err)
	t.Cleanup(func() { m.Close() })
	for _, attach := range k.allKinds() {
		if attach == compiler.Fentry {
			continue // it skips only what its own program calls
		}
		t.Run(string(attach), func(t *testing.T) {
			session := k.loadMeasured(t, resolve.Wishes{Attach: attach}, compiler.Options{}, measured{"htab_map_update_elem", compiler.Durations})
			_, err := session.Attach()
			require.NoError(t, err)
			tr := &tracer{session}
			before, known := tr.missedOnce(t)
			for range calls {
				require.NoError(t, m.Put(uint32(0), uint32(1)))
			}
			after, _ := tr.missedOnce(t)
			measure := tr.measured(t)[0]
			require.Zero(t, measure.Called())
			if known {
				require.Equal(t, uint64(calls), after[measure.Probe]-before[measure.Probe])
			}
		})
	}
}

// missedOnce returns how many calls each probe missed, and whether that is known of all.
func (tr *tracer) missedOnce(t *testing.T) (of map[*compiler.Probe]uint64, known bool) {
	all, err := tr.Missed()
	require.NoError(t, err)
	of, known = map[*compiler.Probe]uint64{}, true
	for _, m := range runtime.MissedOnce(all) {
		of[m.Probes[0]] += m.N
		known = known && !m.Uncounted
	}
	return of, known
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
	held, known := tr.missedOnce(t)
	require.NoError(t, session.Begin())
	begun, _ := tr.missedOnce(t)
	run()
	ending, _ := tr.missedOnce(t)
	measures := tr.measured(t)
	ended, _ := tr.missedOnce(t)
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
		underWay := 0 // calls that are in some measures only, as they were under way when counting ended
		if cpus := goruntime.NumCPU(); cpus > 1 || k.target().Features.Preemptible {
			underWay = cpus
		}
		require.LessOrEqual(t, least, most+uint64(underWay))
		require.Greater(t, least, uint64(wakeups()))
	}
}
