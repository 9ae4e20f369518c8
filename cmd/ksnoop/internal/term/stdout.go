package term

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

	"github.com/ksnoop/ksnoop/runtime/render"
)

// Stdout is the file for all output. A reader may be as slow as it likes; after
// Hurry it must read something from time to time.
type Stdout struct {
	file   *os.File
	atOnce int            // bytes to write without asking whether there is room
	grace  time.Duration  // how long after Hurry a reader may read nothing
	fds    [2]unix.PollFd // of the file, and of the eventfd that Hurry signals
	bare   bool           // writes return the file's own errors
}

// pipeBuf is the number of bytes that a pipe takes without blocking, if it takes any
// (PIPE_BUF in include/uapi/linux/limits.h).
const pipeBuf = 4096

// ErrReaderGone is the error of a write after the reader has gone.
var ErrReaderGone = errors.New("nobody reads stdout any more")

// NewStdout returns a Stdout that writes to file.
func NewStdout(file *os.File) *Stdout {
	o := &Stdout{file: file, atOnce: pipeBuf, grace: time.Second}
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		o.atOnce = math.MaxInt
	}
	o.fds[0] = unix.PollFd{Fd: int32(file.Fd()), Events: unix.POLLOUT}
	o.fds[1] = unix.PollFd{Fd: -1, Events: unix.POLLIN} // poll ignores a negative descriptor
	if fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC); err == nil {
		o.fds[1].Fd = int32(fd)
	}
	// These signals would kill ksnoop and leave its events in tracefs behind. Now
	// the write returns an error instead. Children do not inherit this.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE, syscall.SIGXFSZ)
	return o
}

// Beside returns a Stdout for a file that is written besides w, or below it: Hurry(w)
// makes its writes give up, too. They return the file's own errors.
func Beside(w io.Writer, file *os.File) *Stdout {
	o := NewStdout(file)
	if s := stdoutOf(w); s != nil {
		unix.Close(int(o.fds[1].Fd))
		o.fds[1] = s.fds[1]
	}
	o.bare = true
	return o
}

// stdoutOf returns the Stdout that w leads to, or nil.
func stdoutOf(w io.Writer) *Stdout {
	if p, ok := w.(*PlainWriter); ok {
		w = p.w
	}
	o, _ := w.(*Stdout)
	return o
}

// Unwrap returns the file.
func (o *Stdout) Unwrap() io.Writer { return o.file }

// Hurry makes writes to w give up, if w leads to a Stdout, once its reader reads
// nothing any more. Any goroutine may call it.
func Hurry(w io.Writer) {
	if o := stdoutOf(w); o != nil {
		one := [8]byte{1}
		_, _ = unix.Write(int(o.fds[1].Fd), one[:]) // without the event, a second signal ends ksnoop
	}
}

// Write waits for room before it writes, as nothing would wake it from a write that
// blocks. It does not make the file non-blocking, which others may share.
func (o *Stdout) Write(p []byte) (n int, err error) {
	for n < len(p) {
		if err := o.await(); err != nil {
			return n, err
		}
		m, err := o.file.Write(p[n : min(len(p)-n, o.atOnce)+n])
		n += m
		if err != nil && !errors.Is(err, unix.EAGAIN) { // others may have made it non-blocking, and filled it
			return n, o.explain(err)
		}
	}
	return n, nil
}

// await waits until the file takes more, or returns an error if it never will.
func (o *Stdout) await() error {
	for {
		_, err := unix.Poll(o.fds[:], -1)
		if err == nil && o.fds[0].Revents == 0 { // Hurry was called
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

// explain returns an error that explains the error of a write.
func (o *Stdout) explain(err error) error {
	var errno unix.Errno
	switch {
	case o.bare, !errors.As(err, &errno):
		return err
	case errno == unix.EPIPE:
		return ErrReaderGone
	case errno == unix.ENOSPC, errno == unix.EDQUOT, errno == unix.EFBIG:
		return fmt.Errorf("%s: %w: make room there, or show less", o.name(), errno)
	}
	return fmt.Errorf("%s: %w", o.name(), errno)
}

// name returns "stdout", with the name of its file if that can be found out.
func (o *Stdout) name() string {
	if o.bare && o.file != os.Stdout {
		return render.PlainName(o.file.Name())
	}
	if name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", o.fds[0].Fd)); err == nil {
		return "stdout (" + render.PlainName(name) + ")"
	}
	return "stdout"
}
