//go:build linux

package e2e

import (
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

const (
	together = 50 // short tasks that run at once
	blocked  = 40 // readers that wait at once
)

func floodCalls() int { return rounds(50_000, 1_000_000) } // with the default kind
func kindCalls() int  { return rounds(10_000, 50_000) }    // with each of the other kinds
func shortTasks() int { return rounds(500, 3000) }

// testFlood checks that every call is counted, whether it is shown, filtered, lost
// or missed.
func testFlood(t *testing.T, k *kernel) {
	t.Run("default", func(t *testing.T) { floodCallsOf(t, k, "", floodCalls()) })
	for _, kind := range k.kinds(t) {
		t.Run(string(kind), func(t *testing.T) { floodCallsOf(t, k, kind, kindCalls()) })
	}
	t.Run("short tasks", func(t *testing.T) { traceShortTasks(t, k) })
	t.Run("blocked readers", func(t *testing.T) { traceBlocked(t, k) })
}

// floodCallsOf makes calls of which half are filtered out, with room for few
// events.
func floodCallsOf(t *testing.T, k *kernel, kind compiler.Kind, n int) {
	tr := k.trace(t, kind, compiler.Options{CountCalls: true, RingBytes: 4096}, "null_lseek(offset > 1, offset)")
	seek(t, 1000) // more calls than there is room for
	read := tr.readOn(t)
	seek(t, n-1000)
	require.NoError(t, tr.Stop())
	events := <-read
	counts := tr.counts(t)
	missed := tr.missed(t)
	t.Logf("%d events; %d missed; %+v", events, missed, counts.Counters)
	require.Equal(t, uint64(n), counts.Filtered+counts.Matched+missed)
	require.Equal(t, counts.Matched, counts.Delivered+counts.Lost)
	require.Equal(t, uint64(events), counts.Delivered)
	if missed == 0 {
		require.Equal(t, uint64(n/2), counts.Matched)
	}
	require.NotZero(t, counts.Lost, "the ring buffer is to be too small")
	require.Zero(t, counts.NoRoom+counts.Unreadable+counts.Unpaired)
}

// traceShortTasks checks that there is room to keep calls however many tasks
// make them.
func traceShortTasks(t *testing.T, k *kernel) {
	tr := k.trace(t, "", compiler.Options{CountCalls: true}, "null_lseek(offset > 1, file->f_mode, return >= 0)")
	for range shortTasks() / together {
		threads(t, together, func(int) error { return seekTo(3) })
	}
	events := 0
	tr.events(t, func(*runtime.Event) { events++ })
	counts := tr.counts(t)
	require.Equal(t, shortTasks(), events)
	require.Equal(t, compiler.Counters{Matched: uint64(shortTasks())}, counts.Counters)
}

// traceBlocked checks that long calls are kept until they return.
func traceBlocked(t *testing.T, k *kernel) {
	tr := k.trace(t, "", compiler.Options{CountCalls: true}, "vfs_read(count == 77, file->f_mode, return == 1)",
		"null_lseek(offset > 1, file->f_mode, return >= 0)")
	var pipe [2]int
	require.NoError(t, unix.Pipe2(pipe[:], unix.O_DIRECT)) // one read takes one write
	waiting := make(chan bool, blocked)
	done := make(chan bool)
	go func() {
		defer close(done)
		threads(t, blocked, func(int) error {
			waiting <- true
			_, err := unix.Read(pipe[0], make([]byte, 77))
			return err
		})
	}()
	for range blocked {
		<-waiting
	}
	seek(t, kindCalls())
	for range blocked {
		_, err := unix.Write(pipe[1], []byte{1})
		require.NoError(t, err)
	}
	<-done
	events := map[string]int{}
	tr.events(t, func(ev *runtime.Event) { events[ev.Probe.Func.Name]++ })
	require.Equal(t, map[string]int{"vfs_read": blocked, "null_lseek": kindCalls() / 2}, events)
}

// seek makes n calls of null_lseek, which no other process does here, with
// offsets from 0 to 3.
func seek(t *testing.T, n int) {
	fd, err := unix.Open("/dev/null", unix.O_RDONLY, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	for i := range n {
		_, err := unix.Seek(fd, int64(i%4), unix.SEEK_SET)
		require.NoError(t, err)
	}
}

func seekTo(offset int64) error {
	fd, err := unix.Open("/dev/null", unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Seek(fd, offset, unix.SEEK_SET)
	return err
}

// readOn reads all events as they arrive, and then sends their number.
func (tr *tracer) readOn(t *testing.T) <-chan int {
	read := make(chan int, 1)
	go func() {
		n := 0
		for ev := new(runtime.Event); ; n++ {
			switch err := tr.Read(ev); {
			case errors.Is(err, io.EOF):
				read <- n
				return
			case err != nil:
				t.Error(err)
				read <- n
				return
			}
		}
	}()
	return read
}

// counts returns the counts of the first event type.
func (tr *tracer) counts(t *testing.T) runtime.Counts {
	counts, err := tr.EventCounts()
	require.NoError(t, err)
	return counts[0]
}
