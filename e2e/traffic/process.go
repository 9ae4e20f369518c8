//go:build linux

package traffic

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// exit ends with the status in the argument.
func exit(o *options) error {
	status, err := strconv.Atoi(o.arg)
	if err != nil {
		return err
	}
	os.Exit(status)
	return nil
}

// die ends by the signal whose number is the argument.
func die(o *options) error {
	number, err := strconv.Atoi(o.arg)
	if err != nil {
		return err
	}
	signal.Reset(unix.Signal(number))
	return unix.Kill(unix.Getpid(), unix.Signal(number))
}

// term calls vfs_read with a count of size after it has got SIGTERM. With -hold
// it first makes that file, and waits for the file in the argument.
func term(o *options) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTERM)
	if err := o.start(unix.Gettid()); err != nil {
		return err
	}
	<-signals
	if o.hold != "" {
		if err := os.WriteFile(o.hold, nil, 0o644); err != nil {
			return err
		}
		awaitFile(o.arg)
	}
	return o.after().reads(0)
}

// interrupt sends SIGINT to its parent, as a terminal would to both, and then
// calls vfs_read with a count of size.
func interrupt(o *options) error {
	signal.Ignore(os.Interrupt)
	for range 3 {
		if err := unix.Kill(os.Getppid(), unix.SIGINT); err != nil {
			return err
		}
	}
	return o.reads(0)
}

// family calls vfs_read n times in each of four processes, each of which starts
// the next one: with a count of size in the first; of size+1 in its child; of
// size+2 in its grandchild, after the child has ended; of size+3 in the last.
// With -hold the second process exists before the calls: it makes that file and
// waits for the file of -wait.
func family(o *options) error {
	generation := 0
	if o.arg != "" {
		var err error
		if generation, err = strconv.Atoi(o.arg); err != nil {
			return err
		}
	}
	switch {
	case generation == 0 && o.hold != "":
		return o.parent(generation, func() error { return o.reads(generation) })
	case generation == 1 && o.hold != "":
		if err := os.WriteFile(o.hold, nil, 0o644); err != nil {
			return err
		}
		awaitFile(o.wait)
	case generation == 2:
		for os.Getppid() == o.ancestor {
			time.Sleep(pause)
		}
	}
	if err := o.reads(generation); err != nil || generation == 3 {
		return err
	}
	return o.parent(generation, func() error { return nil })
}

// parent starts the next process of a family, then makes its own calls, and
// waits until the last process of the family has ended.
func (o *options) parent(generation int, calls func() error) error {
	end, write, err := os.Pipe()
	if err != nil {
		return err
	}
	more := []string{"-ancestor", strconv.Itoa(os.Getpid())}
	if generation == 0 && o.hold != "" {
		more = append(more, "-hold", o.hold, "-wait", o.wait)
	}
	child, err := o.again("family", strconv.Itoa(generation+1), more...)
	if err != nil {
		return err
	}
	child.Stdout = os.Stdout
	if generation == 0 {
		child.Stdout = write // the other processes inherit it
	}
	if err := child.Start(); err != nil {
		return err
	}
	if err := calls(); err != nil {
		return err
	}
	if generation == 1 {
		return nil // its child continues
	}
	if err := child.Wait(); err != nil {
		return err
	}
	write.Close()
	_, err = io.Copy(io.Discard, end)
	return err
}

// inherited writes to the file what a process inherits from its parent.
func inherited(o *options) error {
	if o.file == "" {
		return errors.New("-file is wanted")
	}
	huge, err := unix.PrctlRetInt(unix.PR_GET_THP_DISABLE, 0, 0, 0, 0)
	if err != nil {
		return err
	}
	var memlock unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &memlock); err != nil {
		return err
	}
	text := fmt.Sprintln("without huge pages:", huge, "locked memory:", memlock)
	for _, s := range []unix.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGPIPE} {
		text += fmt.Sprintln(s, "is ignored:", signal.Ignored(s))
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	return os.WriteFile(o.file, fmt.Appendln([]byte(text), len(fds), "open files"), 0o644)
}
