//go:build linux

package e2e

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// spanTable stops the session and returns its one table. Every beginning must be ended,
// replaced, still open or without room, and every span that has ended must be in a row,
// unless there is none for it.
func (tr *tracer) spanTable(t *testing.T) *runtime.Table {
	tables := tr.tables(t)
	require.Len(t, tables, 1)
	begin, end := tr.spanCounts(t)
	require.Equal(t, begin.Matched, end.Matched+begin.Replaced+begin.Open+begin.NoRoom)
	n := tables[0].Full + tables[0].Faulted
	for _, row := range tables[0].Rows {
		n += row.Calls
	}
	require.Equal(t, end.Matched, n)
	return tables[0]
}

// testSpanCounted checks spans of threads that read different numbers of bytes, by
// which the spans are counted.
func testSpanCounted(t *testing.T, k *kernel, attach compiler.Kind) {
	const threads, least, sizes = 4, 5000, 50
	calls := rounds(500, 20_000)
	zero, err := unix.Open("/dev/zero", unix.O_RDONLY, 0)
	require.NoError(t, err)
	defer unix.Close(zero)
	tr := k.trace(t, attach, compiler.Options{PID: uint32(os.Getpid())},
		fmt.Sprintf("vfs_read(count, sum(count)) if count >= %d && count < %d => vfs_read(return, $comm, count(), min(return), hist($duration)) on $tid", least, least+sizes))
	var working sync.WaitGroup
	for range threads {
		c := newCaller(t)
		working.Go(func() {
			c.do(func() {
				buf := make([]byte, least+sizes)
				for n := range calls {
					_, _ = unix.Read(zero, buf[:least+n%sizes]) // the test compares what is counted
				}
			})
		})
	}
	working.Wait()
	require.Zero(t, tr.missed(t))
	table := tr.spanTable(t)
	require.Equal(t, "vfs_read => vfs_read", table.Label)
	require.Len(t, table.Rows, sizes)
	for _, row := range table.Rows {
		size, want := row.Key[0].Uint64(), uint64(threads*calls/sizes)
		require.Equal(t, size, row.Key[1].Uint64())
		require.Equal(t, want, row.Calls)
		require.Equal(t, runtime.NewUint(want*size), row.Cells[0].Number)
		require.Equal(t, runtime.NewUint(want), row.Cells[1].Number)
		require.Equal(t, runtime.NewUint(size), row.Cells[2].Number)
		n := uint64(0)
		for _, b := range row.Cells[3].Buckets {
			n += b.Count
		}
		require.Equal(t, want, n)
	}
}

// testSpanOffCPU checks that the time of a sleeping thread off the CPU is counted by the
// stack with which it went to sleep, not by that of whatever ran before it woke up.
func testSpanOffCPU(t *testing.T, k *kernel) {
	const nap = 2 * time.Millisecond
	naps := rounds(50, 1000)
	c := newCaller(t)
	tr := k.trace(t, "", compiler.Options{}, fmt.Sprintf(
		"tp:sched_switch($arg2->comm, $kstack) if $arg2->pid == %d => tp:sched_switch(count(), sum($duration)) on $arg2->pid == $arg3->pid", c.tid))
	var want, away int64 // a nap that is over before the thread gets to sleep is none
	c.do(func() {
		switches, at, ran := switchesOf(t), clock(unix.CLOCK_MONOTONIC), clock(unix.CLOCK_THREAD_CPUTIME_ID)
		for range naps {
			ts := unix.NsecToTimespec(nap.Nanoseconds())
			_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil)
		}
		away = clock(unix.CLOCK_MONOTONIC) - at - (clock(unix.CLOCK_THREAD_CPUTIME_ID) - ran)
		want = switchesOf(t) - switches
	})
	require.Greater(t, want, int64(naps)/2)
	table := tr.spanTable(t)
	slept, off := uint64(0), runtime.Int{}
	for _, row := range table.Rows {
		require.Greater(t, len(row.Key[1].Data), 8)
		slept += row.Calls
		off = off.Add(row.Cells[1].Number)
	}
	require.GreaterOrEqual(t, slept, uint64(want))
	require.GreaterOrEqual(t, off.Cmp(runtime.NewInt(away*9/10)), 0, "%v of %v ns", off, away)
	require.LessOrEqual(t, len(table.Rows), 20, "few places where the thread sleeps or is preempted")
}

// switchesOf returns how often this thread was taken from its CPU.
func switchesOf(t *testing.T) int64 {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &used); err != nil {
		t.Error(err)
	}
	return used.Nvcsw + used.Nivcsw
}

// clock returns the time of a clock in nanoseconds.
func clock(id int32) int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(id, &ts) // these clocks always exist
	return ts.Nano()
}

// testSpanBlocks checks requests of block devices, which are counted by disk: those of a
// loop device are as many as the reads.
func testSpanBlocks(t *testing.T, k *kernel) {
	const block = 4096
	reads := rounds(100, 2000)
	disk := loopDisk(t, 64*block)
	spec := "tp:block_rq_issue($arg1->q->disk->disk_name, sum($arg1->__data_len)) => tp:block_rq_complete(count(), hist($duration)) on $arg1"
	if k.refused(t, "", spec) != nil { // before 5.17 the request has the disk
		spec = strings.Replace(spec, "q->disk", "rq_disk", 1)
	}
	tr := k.trace(t, "", compiler.Options{}, spec)
	memory, err := unix.Mmap(-1, 0, block, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE) // direct reads need aligned memory
	require.NoError(t, err)
	defer unix.Munmap(memory)
	for i := range reads {
		n, err := unix.Pread(disk, memory, int64(i%64)*block)
		require.NoError(t, err)
		require.Equal(t, block, n)
	}
	table := tr.spanTable(t)
	require.Zero(t, table.Faulted+table.Full)
	for _, row := range table.Rows {
		if unix.ByteSliceToString(row.Key[0].Data) != "loop0" {
			continue
		}
		require.Equal(t, uint64(reads), row.Calls)
		require.Equal(t, runtime.NewInt(int64(reads*block)), row.Cells[0].Number)
		n := uint64(0)
		for _, b := range row.Cells[2].Buckets {
			n += b.Count
		}
		require.Equal(t, uint64(reads), n)
		return
	}
	t.Fatalf("no row of loop0 in %d rows", len(table.Rows))
}

// loopDisk returns a loop device with a file of the given size in bytes, opened for
// direct reads.
func loopDisk(t *testing.T, size int64) int {
	module, err := os.Open("/lib/modules/loop.ko")
	require.NoError(t, err)
	defer module.Close()
	require.NoError(t, unix.FinitModule(int(module.Fd()), "max_loop=1", 0))
	t.Cleanup(func() { require.NoError(t, unix.DeleteModule("loop", 0)) })
	backing, err := unix.MemfdCreate("disk", 0)
	require.NoError(t, err)
	defer unix.Close(backing)
	require.NoError(t, unix.Ftruncate(backing, size))
	disk, err := unix.Open("/dev/loop0", unix.O_RDONLY|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetInt(disk, unix.LOOP_SET_FD, backing))
	t.Cleanup(func() {
		require.NoError(t, unix.IoctlSetInt(disk, unix.LOOP_CLR_FD, 0))
		require.NoError(t, unix.Close(disk))
	})
	return disk
}
