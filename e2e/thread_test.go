//go:build linux

package e2e

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/e2e/traffic"
)

// threads runs a function in n threads at once, each with its number, and waits
// until all have ended. It moves them between CPUs all the time, if there are
// several.
func threads(t *testing.T, n int, call func(i int) error) {
	// Threads that sleep in the kernel keep their processors of the Go runtime
	// for a while. With one processor for each, other threads need not wait.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n + 2))
	ids, begin, done := make(chan int), make(chan bool), make(chan error, n)
	var tids []int
	for i := range n {
		go func() {
			traffic.LockThread()
			ids <- unix.Gettid()
			<-begin
			done <- call(i)
		}()
		tids = append(tids, <-ids)
	}
	close(begin)
	stop := make(chan bool)
	go migrate(tids, stop)
	for range n {
		require.NoError(t, <-done)
	}
	close(stop)
}

// migrate moves threads between two CPUs until it is stopped.
func migrate(tids []int, stop <-chan bool) {
	if runtime.NumCPU() < 2 {
		return
	}
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(500 * time.Microsecond):
		}
		for j, tid := range tids {
			var set unix.CPUSet
			set.Set((i + j) % 2)
			_ = unix.SchedSetaffinity(tid, &set) // the thread may have ended
		}
	}
}

// A caller is a thread that only makes the calls of a test, so that a trace of
// it does not show other calls of this process.
type caller struct {
	tid   uint32
	calls chan func()
	done  chan bool
}

func newCaller(t *testing.T) *caller {
	c := &caller{calls: make(chan func()), done: make(chan bool)}
	tid := make(chan int)
	go func() {
		traffic.LockThread()
		tid <- unix.Gettid()
		for call := range c.calls {
			call()
			c.done <- true
		}
	}()
	c.tid = uint32(<-tid)
	t.Cleanup(func() { close(c.calls) })
	return c
}

// do makes calls in the thread and waits for them.
func (c *caller) do(calls func()) {
	c.calls <- calls
	<-c.done
}
