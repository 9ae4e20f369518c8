//go:build linux

package e2e

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// testFrozen checks that after Stop nothing is shown or counted, though the
// programs are attached and calls are under way on all sides. It also checks
// that every counted event is delivered or lost.
func testFrozen(t *testing.T, k *kernel) {
	for _, kind := range k.kinds(t) {
		for _, spec := range []string{getpgid + "(regs)", getpgid + "(regs, return)"} {
			if kind == compiler.KprobeSession && spec == getpgid+"(regs)" {
				continue // kprobe.session is for both sides
			}
			t.Run(string(kind)+" "+spec, func(t *testing.T) { testFrozenKind(t, k, kind, spec) })
		}
	}
}

func testFrozenKind(t *testing.T, k *kernel, kind compiler.Kind, spec string) {
	tr := k.trace(t, kind, compiler.Options{CountCalls: true, RingBytes: 4096}, spec)

	const threads, calls = 4, 20_000
	var after atomic.Bool // set after Stop, before the last calls
	var wg sync.WaitGroup
	defer wg.Wait()
	defer after.Store(true)
	for range threads {
		wg.Go(func() {
			for !after.Load() {
				callKernel(getpgid, 10)
			}
			callKernel(getpgid, calls)
		})
	}
	for tr.counters(t).Lost < 1000 {
	}
	require.NoError(t, tr.Stop())
	counted := tr.counters(t)
	shown := uint64(0)
	tr.events(t, func(*runtime.Event) { shown++ })
	require.NotZero(t, shown)
	require.Equal(t, counted.Matched, shown+counted.Lost)
	after.Store(true)
	wg.Wait()
	require.True(t, tr.Idle())
	require.Equal(t, counted, tr.counters(t), "counting has ended")
	t.Logf("shown %d, %+v", shown, counted)
}
