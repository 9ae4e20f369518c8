//go:build linux

package script

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// A pipe is a tracer's output instead of a file. Nothing reads it until the
// script does.
type pipe struct {
	end    *os.File   // to read from
	copied chan error // nil if nothing reads
}

// pipeBytes is the size of the pipe. It is less than the events that fit into a
// ring buffer of one page, so that the ring buffer fills up, however fast the
// calls are.
const pipeBytes = 8192

// newPipe returns a pipe and its write end.
func newPipe() (*pipe, *os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	_, err = unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, pipeBytes)
	return &pipe{end: r}, w, err
}

// held reports whether there is something to read.
func (p *pipe) held() bool { return p.has(unix.POLLIN) }

// full reports whether a write would block. It opens a write end only for this
// check, so that the reader sees the end of the file.
func (p *pipe) full() (bool, error) {
	w, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", p.end.Fd()), os.O_WRONLY, 0)
	if err != nil {
		return false, err
	}
	defer w.Close()
	return !(&pipe{end: w}).has(unix.POLLOUT), nil
}

func (p *pipe) has(events int16) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.end.Fd()), Events: events}}, 0)
	return n > 0 && err == nil
}

// read copies everything to a file, until the tracer has ended.
func (p *pipe) read(file string) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	p.copied = make(chan error, 1)
	go func() {
		defer out.Close()
		_, err := io.Copy(out, p.end)
		p.copied <- err
	}()
	return nil
}

// done waits for the copy, if there is one.
func (p *pipe) done() error {
	if p == nil || p.copied == nil {
		return nil
	}
	return <-p.copied
}

func pipeCommand(ts *testscript.TestScript, args []string) {
	usage(ts, len(args) == 2, "pipe full|read|close OUT")
	t := running(ts).find(args[1])
	usage(ts, t != nil && t.pipe != nil, "pipe after trace -pipe "+args[1])
	switch args[0] {
	case "full":
		t.pipe.awaitFull(ts)
	case "read":
		ts.Check(t.pipe.read(ts.MkAbs(args[1])))
	case "close":
		ts.Check(t.pipe.end.Close())
	default:
		ts.Fatalf("pipe full|read|close OUT")
	}
}

func (p *pipe) awaitFull(ts *testscript.TestScript) {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(pause) {
		full, err := p.full()
		ts.Check(err)
		if full {
			return
		}
	}
	ts.Fatalf("the pipe is not full after %v", patience)
}
