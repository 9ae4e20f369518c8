//go:build linux

package e2e

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/e2e/traffic"
	"github.com/ksnoop/ksnoop/runtime"
)

// testRejected checks, where the kernel follows few calls at once, that the return
// of a call that is rejected at entry is not taken for that of an earlier call in
// its frame, whose return was missed. Frames differ by the random offset that the
// stack has in each system call: one of 64 calls or so has the same.
func testRejected(t *testing.T, k *kernel) {
	const waiting, size, rejected = 16, 1234, 64
	zero, err := unix.Open("/dev/zero", unix.O_RDONLY, 0)
	require.NoError(t, err)
	defer unix.Close(zero)
	read := func(fd, size int) {
		n, err := unix.Read(fd, make([]byte, size))
		require.Equal(t, size, n, "%v", err)
	}
	var pipes [waiting][2]int
	for i := range pipes {
		require.NoError(t, unix.Pipe2(pipes[i][:], 0))
		defer unix.Close(pipes[i][0])
		defer unix.Close(pipes[i][1])
	}
	tr := k.trace(t, compiler.KprobeMulti, compiler.Options{}, "vfs_read(count == 1234, return, $duration)")
	caller := newCaller(t)
	rounds := rounds(50, 200)
	for range rounds {
		var tids [waiting]atomic.Int64
		threads(t, waiting+1, func(i int) error {
			if i < waiting {
				tids[i].Store(int64(unix.Gettid()))
				_, err := unix.Read(pipes[i][0], make([]byte, size))
				return err
			}
			for i := range tids {
				for tids[i].Load() == 0 {
					schedYield()
				}
				if err := traffic.AwaitRead(int(tids[i].Load())); err != nil {
					return err
				}
			}
			caller.do(func() { read(zero, size) }) // the kernel has nothing left to follow it with
			for _, p := range pipes {
				if _, err := unix.Write(p[1], make([]byte, size)); err != nil {
					return err
				}
			}
			return nil
		})
		caller.do(func() {
			for range rejected {
				read(zero, 7)
			}
		})
	}
	var calls []call
	tr.events(t, func(ev *runtime.Event) {
		calls = append(calls, call{thread(ev), ev.Call, ev.Start, ev.Time, number(ev, "count"), number(ev, "return")})
	})
	counters, missed := tr.counters(t), tr.missed(t)
	t.Logf("%d calls of %d; %d missed, %+v", len(calls), rounds*(waiting+1), missed, counters)
	_, err = checkCalls(calls)
	require.NoError(t, err)
	require.Equal(t, compiler.Counters{Unpaired: counters.Unpaired}, counters)
	require.GreaterOrEqual(t, missed, uint64(rounds))
	require.GreaterOrEqual(t, len(calls)+int(missed), rounds*(waiting+1))
}
