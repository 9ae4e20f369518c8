//go:build linux

package traffic

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// threads calls vfs_read once in each of n threads, with a count of size in the
// first, size+1 in the second and so on.
func threads(o *options) error {
	zero, err := unix.Open("/dev/zero", unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	_, wait, err := o.inThreads(func(i int) error {
		_, err := unix.Read(zero, make([]byte, o.size+i))
		return err
	})
	if err != nil {
		return err
	}
	return wait()
}

// blocked calls vfs_read with a count of size in n threads. The calls return 0,
// once all of them wait in the kernel.
func blocked(o *options) error {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], 0); err != nil {
		return err
	}
	tids, wait, err := o.inThreads(func(int) error {
		_, err := unix.Read(pipe[0], make([]byte, o.size))
		return err
	})
	if err != nil {
		return err
	}
	for _, tid := range tids {
		if err := AwaitRead(tid); err != nil {
			return err
		}
	}
	if err := unix.Close(pipe[1]); err != nil {
		return err
	}
	return wait()
}

// inThreads starts n threads and, once they are all there, has each make its
// call. It returns their ids, and a function that waits for the calls.
func (o *options) inThreads(call func(i int) error) (tids []int, wait func() error, err error) {
	ids, begin, done := make(chan int), make(chan bool), make(chan error, o.n)
	for i := range o.n {
		go func() {
			LockThread()
			ids <- unix.Gettid()
			<-begin
			done <- call(i)
		}()
		tids = append(tids, <-ids)
	}
	if err := o.start(tids[0]); err != nil {
		return nil, nil, err
	}
	close(begin)
	return tids, func() error {
		for range tids {
			if err := <-done; err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// AwaitRead waits until a thread sleeps in the read system call.
func AwaitRead(tid int) error {
	read := fmt.Appendf(nil, "%d ", unix.SYS_READ)
	for {
		syscall, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/syscall", tid))
		if err != nil {
			return err
		}
		if bytes.HasPrefix(syscall, read) {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
}

// LockThread keeps the goroutine on its thread and the Go runtime's signals
// away from that: they make the kernel repeat a call, or end it early.
func LockThread() {
	runtime.LockOSThread()
	urgent := unix.Sigset_t{Val: [16]uint64{1 << (unix.SIGURG - 1)}}
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &urgent, nil); err != nil {
		panic(err) // it has no other reason than a wrong argument
	}
}
