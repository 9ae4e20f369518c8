//go:build linux

package traffic

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// start tells who is about to make the calls and waits until they are wanted.
// tid is the thread that makes the first one. Whoever has seen the process id
// finds the thread id, too.
func (o *options) start(tid int) error {
	if err := writeNumber(o.tid, tid); err != nil {
		return err
	}
	if err := writeNumber(o.pid, os.Getpid()); err != nil {
		return err
	}
	if o.wait == "" {
		return nil
	}
	awaitFile(o.wait)
	return nil
}

// awaitFile waits for a file: by access, because none of the kinds counts it.
func awaitFile(name string) {
	for unix.Access(name, unix.F_OK) != nil {
		time.Sleep(time.Millisecond)
	}
}

// writeNumber writes a line to a file, if one is wanted.
func writeNumber(file string, n int) error {
	if file == "" {
		return nil
	}
	return os.WriteFile(file, fmt.Appendln(nil, n), 0o644)
}

// repeat starts and then makes n calls, all by the current thread.
func (o *options) repeat(call func() error) error {
	if err := o.start(unix.Gettid()); err != nil {
		return err
	}
	for range o.n {
		if err := call(); err != nil {
			return err
		}
	}
	return nil
}
