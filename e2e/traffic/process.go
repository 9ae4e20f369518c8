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

// die ends by the signal whose number is in the argument.
func die(o *options) error {
	number, err := strconv.Atoi(o.arg)
	if err != nil {
		return err
	}
	signal.Reset(unix.Signal(number))
	return unix.Kill(unix.Getpid(), unix.Signal(number))
}

// term calls vfs_read with a count of size once it has got SIGTERM. With -hold
// it makes that file first, and waits for the one in the argument.
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

// family calls vfs_read n times in each of four processes: with a count of size
// in the first; of size+1 in its child; of size+2 in the child of that, whose
// parent has ended by then; of size+3 in a process that this one starts. With
// -hold there are two of them when it starts, and the second has made that file.
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
			time.Sleep(time.Millisecond)
		}
	}
	if err := o.reads(generation); err != nil || generation == 3 {
		return err
	}
	return o.parent(generation, func() error { return nil })
}

// parent starts the next process of a family, then makes calls of its own, and
// waits until the last process of all has ended.
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
		child.Stdout = write // all the others have it as well
	}
	if err := child.Start(); err != nil {
		return err
	}
	if err := calls(); err != nil {
		return err
	}
	if generation == 1 {
		return nil // its child lives on
	}
	if err := child.Wait(); err != nil {
		return err
	}
	write.Close()
	_, err = io.Copy(io.Discard, end)
	return err
}

// inherited writes to the file what a process gets from the one that starts it.
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
