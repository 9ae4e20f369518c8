package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stdout is a file that everything is shown in. A reader may be as slow as it
// likes; after hurry it must read something from time to time.
type stdout struct {
	file   *os.File
	atOnce int            // how much to write without asking whether there is room
	grace  time.Duration  // how long hurry lets a reader read nothing
	fds    [2]unix.PollFd // of the file, and of an event that hurry makes happen
}

// pipeBuf is what a pipe takes without blocking, once it takes anything
// (PIPE_BUF in include/uapi/linux/limits.h).
const pipeBuf = 4096

// errReaderGone is the end of output that nobody wants any more.
var errReaderGone = errors.New("nobody reads stdout any more")

func newStdout(file *os.File) *stdout {
	o := &stdout{file: file, atOnce: pipeBuf, grace: time.Second}
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		o.atOnce = math.MaxInt
	}
	o.fds[0] = unix.PollFd{Fd: int32(file.Fd()), Events: unix.POLLOUT}
	o.fds[1] = unix.PollFd{Fd: -1, Events: unix.POLLIN} // poll ignores a negative one
	if fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC); err == nil {
		o.fds[1].Fd = int32(fd)
	}
	// What would kill ksnoop, with its events in tracefs left behind, becomes
	// the error of a write. Children do not inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE, syscall.SIGXFSZ)
	return o
}

// hurry gives up what is still to be written to w, if that leads to a stdout,
// once its reader reads nothing. Any goroutine may call it.
func hurry(w io.Writer) {
	if p, ok := w.(*plainWriter); ok {
		w = p.w
	}
	if o, ok := w.(*stdout); ok {
		one := [8]byte{1}
		_, _ = unix.Write(int(o.fds[1].Fd), one[:]) // without the event, a second signal ends ksnoop
	}
}

// Write waits for room before it writes, as nothing would wake it from a write
// that blocks: the file may be shared with others, who would not expect it to
// stop blocking.
func (o *stdout) Write(p []byte) (n int, err error) {
	for n < len(p) {
		if err := o.await(); err != nil {
			return n, err
		}
		m, err := o.file.Write(p[n : min(len(p)-n, o.atOnce)+n])
		n += m
		if err != nil {
			return n, o.explain(err)
		}
	}
	return n, nil
}

// await waits until the file takes more, or says why it never will.
func (o *stdout) await() error {
	for {
		_, err := unix.Poll(o.fds[:], -1)
		if err == nil && o.fds[0].Revents == 0 { // in a hurry
			var n int
			if n, err = unix.Poll(o.fds[:1], int(o.grace.Milliseconds())); n == 0 && err == nil {
				return fmt.Errorf("%s is full and nobody reads it: what was still to be shown is dropped", o.name())
			}
		}
		if err != unix.EINTR {
			return nil
		}
	}
}

// explain says what became of a write.
func (o *stdout) explain(err error) error {
	var errno unix.Errno
	switch {
	case !errors.As(err, &errno):
		return err
	case errno == unix.EPIPE:
		return errReaderGone
	case errno == unix.ENOSPC, errno == unix.EDQUOT, errno == unix.EFBIG:
		return fmt.Errorf("%s: %w: make room there, or show less", o.name(), errno)
	}
	return fmt.Errorf("%s: %w", o.name(), errno)
}

// name is stdout, with what it leads to where that can be found out.
func (o *stdout) name() string {
	if name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", o.fds[0].Fd)); err == nil {
		return "stdout (" + plainName(name) + ")"
	}
	return "stdout"
}
