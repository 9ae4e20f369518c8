//go:build linux

package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

const hammers = 4 // threads, on one CPU

// blows is how many calls all threads make.
func blows() int { return rounds(40_000, 100_000) }

// testPreemption: where tasks are preempted in the middle of a program, the
// default misses no call for that, and fentry says how many it has missed.
func testPreemption(t *testing.T, k *kernel) {
	if !k.target().Features.Preemptible {
		t.Skip("this kernel does not preempt")
	}
	for _, attach := range []compiler.Kind{"", compiler.Fentry} {
		t.Run("by "+string(attach), func(t *testing.T) {
			tr := k.trace(t, attach, compiler.Options{}, "vfs_read(count == 4321)")
			hammer(t)
			events := 0
			tr.events(t, func(*runtime.Event) { events++ })
			missed := int(tr.missed(t))
			t.Logf("%d events, %d calls missed", events, missed)
			require.Zero(t, tr.counters(t).Lost)
			require.Equal(t, blows(), events+missed)
			if attach == "" {
				require.Zero(t, missed)
			}
		})
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
