//go:build linux

package traffic

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
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

// blocked calls vfs_read with a count of size in n threads. The calls return 0
// once all of them wait in the kernel.
func blocked(o *options) error {
	end, wait, err := o.reading(func() {})
	if err != nil {
		return err
	}
	if err := unix.Close(end); err != nil {
		return err
	}
	return wait()
}

// reading starts n threads that call begin and then vfs_read with a count of size. They
// all wait in the kernel until the caller closes end, which no other program inherits.
func (o *options) reading(begin func()) (end int, wait func() error, err error) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return 0, nil, err
	}
	tids, wait, err := o.inThreads(func(int) error {
		begin()
		_, err := unix.Read(pipe[0], make([]byte, o.size))
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	for _, tid := range tids {
		if err := AwaitRead(tid); err != nil {
			return 0, nil, err
		}
	}
	return pipe[1], wait, nil
}

// heir calls vfs_read n times with a count of size in a thread whose process
// has lost its first thread, and then executes the kind read with the same
// number of calls. The process keeps its id all the time.
func heir(o *options) error {
	zero, err := unix.Open("/dev/zero", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	self, err := os.Executable() // unknown after the first thread has ended
	if err != nil {
		return err
	}
	if err := o.start(unix.Gettid()); err != nil {
		return err
	}
	go func() {
		LockThread()
		if err := o.inherit(self, zero); err != nil {
			fmt.Fprintln(os.Stderr, "traffic: make heir traffic:", err)
		}
		os.Exit(1)
	}()
	_, _, err = unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
	return err // never, because the thread has ended
}

// inherit makes the calls of heir after the first thread has ended.
func (o *options) inherit(self string, zero int) error {
	for {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/stat", os.Getpid()))
		if err != nil {
			return err
		}
		if bytes.Contains(stat, []byte(") Z ")) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	for range o.n {
		if _, err := unix.Read(zero, make([]byte, o.size)); err != nil {
			return err
		}
	}
	return unix.Exec(self, []string{"traffic", "read", "-n", strconv.Itoa(o.n), "-size", strconv.Itoa(o.size)}, os.Environ())
}

// inThreads starts n threads and makes each call its function after all have
// started. It returns their ids, and a function that waits for the calls.
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

// LockThread locks the goroutine to its thread and blocks the Go runtime's
// signals there, because they make the kernel repeat a call, or end it early.
func LockThread() {
	runtime.LockOSThread()
	urgent := unix.Sigset_t{Val: [16]uint64{1 << (unix.SIGURG - 1)}}
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &urgent, nil); err != nil {
		panic(err) // fails only for wrong arguments
	}
}
