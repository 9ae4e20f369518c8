//go:build linux

package traffic

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ends starts n threads that end, one after another, inside the exit system
// call. The argument is their name, if there is one.
func ends(o *options) error {
	return o.repeat(func() error { return o.inThread(func() error { return nil }) })
}

// inThread calls a function in a new thread, and waits until that has ended. If
// the process ended before, it would end the last thread in another system call.
func (o *options) inThread(do func() error) error {
	done, tid := make(chan error), 0
	go func() {
		LockThread() // the thread ends with a locked goroutine
		tid = unix.Gettid()
		err := rename(o.arg)
		if err == nil {
			err = do()
		}
		done <- err
	}()
	err := <-done
	for unix.Tgkill(unix.Getpid(), tid, 0) == nil {
		unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
	return err
}

// rename gives the thread a name, or keeps its name if name is empty.
func rename(name string) error {
	if name == "" {
		return nil
	}
	text := append([]byte(name), 0)
	return unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&text[0])), 0, 0, 0)
}

// signalled starts n threads, one after another, that each send themselves a
// signal with a handler, so that get_signal returns.
func signalled(o *options) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGUSR1)
	return o.repeat(func() error {
		return o.inThread(func() error {
			if err := unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGUSR1); err != nil {
				return err
			}
			<-signals
			return nil
		})
	})
}

// killed starts a process with n threads that is killed, so that each of them
// ends inside get_signal. The argument is their name, if there is one.
func killed(o *options) error {
	child, err := o.again("victims", o.arg, "-n", fmt.Sprint(o.n))
	if err != nil {
		return err
	}
	err = child.Run()
	var status *exec.ExitError
	if errors.As(err, &status) && status.Sys().(syscall.WaitStatus).Signal() == unix.SIGKILL {
		return nil
	}
	return fmt.Errorf("the process was not killed: %v", err)
}

// victims starts n threads in the process that killed runs, and kills it. The
// threads have the name of the one that starts them.
func victims(o *options) error {
	if err := rename(o.arg); err != nil {
		return err
	}
	for range o.n {
		if err := spawn(); err != nil {
			return err
		}
	}
	if err := rename("killer"); err != nil {
		return err
	}
	return unix.Kill(unix.Getpid(), unix.SIGKILL)
}

// replaced starts a process with n threads, in which another one than the first executes
// the kind replacing while they wait in vfs_read with a count of size. These calls fail,
// and the threads end inside get_signal, as does the first one. The one that executes
// takes over the id of the first one, inside begin_new_exec. The argument is their name, if
// there is one.
func replaced(o *options) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	name := func() {
		if err := rename(o.arg); err != nil {
			panic(err) // fails only for wrong arguments
		}
	}
	if _, _, err := o.reading(name); err != nil {
		return err
	}
	done := make(chan error)
	go func() {
		LockThread()
		name()
		args := []string{"traffic", "replacing", "-n", strconv.Itoa(o.n), "-size", strconv.Itoa(o.size), o.arg}
		done <- unix.Exec(self, args, os.Environ())
	}()
	return <-done
}

// replacing makes the calls of replaced again, but they return: n of vfs_read with a count
// of size+1, and n of get_signal.
func replacing(o *options) error {
	if err := o.reads(1); err != nil {
		return err
	}
	return signalled(o)
}

// outlived leaves a process behind that sleeps for the duration in the argument.
func outlived(o *options) error {
	child, err := o.again("sleep", o.arg)
	if err != nil {
		return err
	}
	return child.Start()
}

// commands starts n processes, one after another, which end at once.
func commands(o *options) error {
	return o.repeat(func() error {
		child, err := o.again("exit", "0")
		if err != nil {
			return err
		}
		return child.Run()
	})
}
