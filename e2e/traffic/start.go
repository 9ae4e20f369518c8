//go:build linux

package traffic

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// start writes the ids of the process and the thread that will make the calls,
// and waits until the calls are wanted. tid is the thread that makes the first
// call. The thread id is complete before the process id exists.
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

// pause is the time between two checks. With a shorter one, traffic that waits
// would take half of an emulated CPU from the tracer that it waits for.
const pause = 20 * time.Millisecond

// awaitFile waits for a file. It uses access, because no kind counts that.
func awaitFile(name string) {
	for unix.Access(name, unix.F_OK) != nil {
		time.Sleep(pause)
	}
}

// writeNumber writes a line to a file, unless its name is empty.
func writeNumber(file string, n int) error {
	if file == "" {
		return nil
	}
	return os.WriteFile(file, fmt.Appendln(nil, n), 0o644)
}

// repeat calls start and then makes n calls, all from the current thread.
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
