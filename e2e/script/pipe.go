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

// A pipe is what a tracer writes to instead of a file. Nobody reads it until
// the script says so.
type pipe struct {
	end    *os.File   // to read from
	copied chan error // nil: nobody reads
}

// newPipe returns the end to write to, too.
func newPipe() (*pipe, *os.File, error) {
	r, w, err := os.Pipe()
	return &pipe{end: r}, w, err
}

// held says whether there is something to read.
func (p *pipe) held() bool { return p.has(unix.POLLIN) }

// full says whether a write would block. An end to write to is opened for the
// question alone, so that the reader sees the end of the file.
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
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		full, err := p.full()
		ts.Check(err)
		if full {
			return
		}
	}
	ts.Fatalf("the pipe is not full after %v", patience)
}
