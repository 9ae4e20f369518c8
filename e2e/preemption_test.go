//go:build linux

package e2e

import (
	goruntime "runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

const hammers = 4 // threads, on one CPU

// others is more than the calls of vfs_read by other tasks, such as the reads by
// which Go wakes a thread. The kernel may miss these as well.
const others = 20

// blows returns the number of calls of all threads.
func blows() int { return rounds(40_000, 100_000) }

// testPreemption checks, where tasks are preempted in the middle of a program,
// that the default kind misses no call for that reason, and that every kind
// reports how many it has missed.
func testPreemption(t *testing.T, k *kernel) {
	if !k.target().Features.Preemptible {
		t.Skip("this kernel does not preempt")
	}
	for _, attach := range []compiler.Kind{"", compiler.Fentry} {
		t.Run("by "+string(attach), func(t *testing.T) {
			events, missed := hammered(t, k, attach, "vfs_read(count == 4321)")
			requireAll(t, events, missed)
			if attach == "" {
				require.Zero(t, missed)
			}
		})
	}
	for _, attach := range []compiler.Kind{compiler.Kprobe, compiler.KprobeMulti} {
		t.Run("beside reads of what was missed by "+string(attach), func(t *testing.T) {
			tr := k.trace(t, attach, compiler.Options{}, "vfs_read(count == 4321)")
			stop := repeat(t, func() error {
				_, err := tr.Missed()
				return err
			})
			hammer(t)
			stop()
			require.Zero(t, tr.missed(t), "the kernel is asked about programs and links, and not about maps")
		})
	}
	blocked := 0
	for _, attach := range []compiler.Kind{compiler.Kprobe, compiler.KprobeMulti} {
		t.Run("beside lookups by "+string(attach), func(t *testing.T) {
			stop := lookUp(t)
			defer stop()
			events, missed := hammered(t, k, attach, "vfs_read(count == 4321)")
			requireAll(t, events, missed)
			blocked += missed
		})
	}
	// A call has no event if one of its sides is missed, and it may miss both.
	for _, attach := range []compiler.Kind{compiler.Kprobe, compiler.KprobeMulti, compiler.KprobeSession} {
		t.Run("beside lookups both sides by "+string(attach), func(t *testing.T) {
			stop := lookUp(t)
			defer stop()
			events, missed := hammered(t, k, attach, "vfs_read(count == 4321, file->f_mode, return >= 0)")
			require.GreaterOrEqual(t, events+missed, blows())
			require.LessOrEqual(t, 2*events+missed, 2*(blows()+others))
			blocked += missed
		})
	}
	requireBlocked(t, blocked)
}

// requireAll requires that each call is either shown or missed.
func requireAll(t *testing.T, events, missed int) {
	require.GreaterOrEqual(t, events+missed, blows())
	require.LessOrEqual(t, events+missed, blows()+others)
}

// requireBlocked requires that lookups have made programs miss calls, in one of the
// cases at least: a kind may be lucky. On 6.18, and on arm64, that is so rare that
// some runs have none: preemption is lazy, and a tick lets the task that looks up go
// on until it leaves the kernel. Linux 7.2 for amd64 also ends time slices by a timer
// of their own (CONFIG_HRTIMER_REARM_DEFERRED).
func requireBlocked(t *testing.T, missed int) {
	release, err := runtime.Release()
	require.NoError(t, err)
	if !strings.HasPrefix(release, "6.18.") && goruntime.GOARCH != "arm64" {
		require.NotZero(t, missed, "lookups block kprobes")
	}
}

// hammered returns how many of the calls are shown and missed.
func hammered(t *testing.T, k *kernel, attach compiler.Kind, spec string) (events, missed int) {
	tr := k.trace(t, attach, compiler.Options{}, spec)
	hammer(t)
	tr.events(t, func(*runtime.Event) { events++ })
	missed = int(tr.missed(t))
	t.Logf("%d events, %d calls missed", events, missed)
	require.Zero(t, tr.counters(t).Lost)
	return events, missed
}

// lookUp reads a map all the time until stop is called. bpf(2) blocks all
// kprobes of its CPU, also while its task is preempted inside.
func lookUp(t *testing.T) (stop func()) {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: 4096, MaxEntries: 1})
	require.NoError(t, err)
	end := repeat(t, func() error {
		_, err := m.LookupBytes(uint32(0))
		return err
	})
	return func() {
		end()
		m.Close()
	}
}

// repeat calls f all the time until stop is called.
func repeat(t *testing.T, f func() error) (stop func()) {
	var over atomic.Bool
	ended := make(chan error)
	go func() {
		var err error
		for err == nil && !over.Load() {
			err = f()
		}
		ended <- err
	}()
	return func() {
		over.Store(true)
		require.NoError(t, <-ended)
	}
}

// hammer calls vfs_read with a count of 4321 from several threads at once.
func hammer(t *testing.T) {
	zero, err := unix.Open("/dev/null", unix.O_RDONLY, 0)
	require.NoError(t, err)
	defer unix.Close(zero)
	threads(t, hammers, func(int) error {
		buf := make([]byte, 4321)
		for range blows() / hammers {
			if _, err := unix.Read(zero, buf); err != nil {
				return err
			}
		}
		return nil
	})
}
