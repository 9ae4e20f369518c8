//go:build linux

package e2e

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/stretchr/testify/require"
)

// testLibrary traces as a program that imports package runtime does.
func testLibrary(t *testing.T, k *kernel) {
	for _, kind := range append([]compiler.Kind{""}, k.kinds(t)...) {
		name := cmp.Or(string(kind), "default")
		t.Run(name, func(t *testing.T) { traceSeeks(t, kind) })
		t.Run("interrupted/"+name, func(t *testing.T) { traceInterrupted(t, kind) })
	}
	t.Run("tree", traceChild)
	t.Run("partly", traceMost)
}

// traceInterrupted checks that a trace shows the interrupts and softirqs that come
// while its own process runs, if programs can find the preemption count, and none of
// the process's calls.
func traceInterrupted(t *testing.T, kind compiler.Kind) {
	ctx, cancel := context.WithCancel(t.Context())
	o := runtime.Options{
		Wishes: resolve.Wishes{Attach: kind},
		Attached: func(*runtime.Session) error {
			defer cancel()
			for start := time.Now(); time.Since(start) < 300*time.Millisecond; {
				if err := seekTo(4242); err != nil {
					return err
				}
			}
			return nil
		},
	}
	seen := map[string]int{}
	result, err := runtime.Trace(ctx, []string{"null_lseek()", "update_process_times()", "tp:softirq_entry"}, o, func(ev *runtime.Event) error {
		if ev.PID == uint32(os.Getpid()) {
			seen[ev.Probe.Func.Name]++
		}
		return nil
	})
	require.NoError(t, err)
	t.Log(seen)
	known := result.Plan.Probes[0].Features.PreemptCount.Known()
	require.Zero(t, seen["null_lseek"])
	require.Equal(t, known, seen["update_process_times"] > 0)
	require.Equal(t, known, seen["softirq_entry"] > 0)
}

// traceSeeks checks that a trace shows the calls of this process for which a
// condition is true.
func traceSeeks(t *testing.T, kind compiler.Kind) {
	o := runtime.Options{
		Wishes:    resolve.Wishes{Attach: kind},
		Programs:  compiler.Options{PID: uint32(os.Getpid())},
		TraceSelf: true,
		Attached: func(*runtime.Session) error {
			for _, offset := range []int64{1, 4242, 2, 4242} {
				if err := seekTo(offset); err != nil {
					return err
				}
			}
			return nil
		},
	}
	seen := 0
	result, err := runtime.Trace(t.Context(), []string{"null_lseek(offset == 4242, return)"}, o, func(ev *runtime.Event) error {
		require.Equal(t, uint64(4242), ev.Values[0].Uint64())
		require.Zero(t, ev.Values[1].Int64(), "which is where reading of /dev/null always begins")
		if seen++; seen == 2 {
			return runtime.ErrEnough
		}
		return nil
	})
	require.NoError(t, err)
	require.Empty(t, result.Untraced)
	require.Zero(t, result.Counts.Lost(), "%+v", result.Counts)
	require.Equal(t, uint64(2), result.Counts.Events[0].Delivered)
	if kind != "" {
		require.Equal(t, kind, result.Plan.Probes[0].Attach.Entry)
	}
}

// traceChild checks that a trace shows the calls of a process that starts after
// the probes are attached.
func traceChild(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := runtime.Options{Tree: true, Attached: func(s *runtime.Session) error {
		defer cancel()
		return s.FollowChildren(exec.Command("/bin/ksnoop", "--version").Run)
	}}
	seen := 0
	_, err := runtime.Trace(ctx, []string{"tp:sched_process_exec"}, o, func(ev *runtime.Event) error {
		require.Equal(t, "ksnoop", string(ev.Comm))
		seen++
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 1, seen)
}

// traceMost checks that a trace leaves out a function on which the kernel
// allows no kprobe, if its attach kind is kprobe.
func traceMost(t *testing.T) {
	o := runtime.Options{TraceSelf: true, Wishes: resolve.Wishes{Attach: compiler.Kprobe}, Attached: func(*runtime.Session) error { return seekTo(4242) }}
	show := func(*runtime.Event) error { return runtime.ErrEnough }
	result, err := runtime.Trace(t.Context(), []string{"null_lseek(offset == 4242)", "get_kprobe"}, o, show)
	require.NoError(t, err)
	require.Len(t, result.Untraced, 1)
	require.ErrorAs(t, result.Untraced[0], new(*runtime.AttachError))
	_, err = runtime.Trace(t.Context(), []string{"get_kprobe"}, o, show)
	require.ErrorAs(t, err, new(*runtime.AttachError))
}
