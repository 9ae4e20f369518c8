package run

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/runtime"
)

// Command is the command after --, which runs while ksnoop traces.
type Command struct {
	Cmd   *exec.Cmd
	own   Inherited
	group bool // the command has its own process group, which the keys of a terminal do not reach
	// Closed when the command is about to start, has started, and has ended.
	starting, started, Ended chan struct{}
	settle                   func() // called before Ended is closed; nil for nothing

	Status int // valid once the command has ended
}

// FindProgram finds the program of a command.
func FindProgram(args []string, own Inherited, s *term.Streams) (*Command, error) {
	path, err := exec.LookPath(args[0])
	if err != nil && !errors.Is(err, exec.ErrDot) { // a shell runs those, too
		return nil, cannotRun(args[0], err)
	}
	cmd := &exec.Cmd{Path: path, Args: args, Stdin: s.In, Stdout: term.FileOf(s.Out), Stderr: term.FileOf(s.Err)}
	return &Command{Cmd: cmd, own: own, starting: make(chan struct{}), started: make(chan struct{}), Ended: make(chan struct{})}, nil
}

// cannotRun returns an error with the reason, and with the status that a shell uses
// for it.
func cannotRun(name string, err error) error {
	var in *exec.Error
	if errors.As(err, &in) {
		err = in.Err
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	status := exit.NotExecutable
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		status = exit.NotFound
	}
	if errors.Is(err, exec.ErrNotFound) {
		err = errors.New("there is no such program in $PATH")
	}
	return exit.StatusError{Status: status, Reason: fmt.Errorf("run %s: %w", cmp.Or(name, `""`), err)}
}

// Start starts the command with what ksnoop itself inherited.
func (c *Command) Start() error {
	close(c.starting)
	defer close(c.started)
	restore := c.own.giveBack()
	err := c.Cmd.Start()
	restore()
	if err != nil {
		close(c.Ended)
		return cannotRun(c.Cmd.Args[0], err)
	}
	return nil
}

// StartUnless starts the command, unless a signal has stopped the session since all was
// attached: the user would have no other way to end the command. A signal that comes just
// now is passed on.
func (c *Command) StartUnless(stopped func() bool) error {
	if stopped() {
		return runtime.ErrStopped
	}
	err := c.Start()
	if err == nil && stopped() {
		c.signal(syscall.SIGTERM)
	}
	return err
}

// Wait waits for the end of the command, then calls done.
func (c *Command) Wait(done func()) {
	err := c.Cmd.Wait()
	c.Status = statusOf(c.Cmd.ProcessState)
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		c.Status = exit.Failure // its input or output could not be copied
	}
	if c.settle != nil {
		c.settle()
	}
	close(c.Ended)
	done()
}

// OwnGroup gives the command its own process group, so that all of it can be ended.
func (c *Command) OwnGroup() {
	c.group = true
	c.Cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// signal sends a signal to the command, or to its group, unless it has ended.
func (c *Command) signal(sig syscall.Signal) {
	if c.group {
		_ = syscall.Kill(-c.Cmd.Process.Pid, sig)
		return
	}
	_ = c.Cmd.Process.Signal(sig)
}

// End ends the command. If it has not ended after patience, End kills it.
func (c *Command) End(patience time.Duration) {
	c.signal(syscall.SIGTERM)
	select {
	case <-c.Ended:
		return
	case <-time.After(patience):
	}
	c.signal(syscall.SIGKILL)
	<-c.Ended
}

// statusOf returns the exit status that a shell would report.
func statusOf(state *os.ProcessState) int {
	ws := state.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return exit.Signal + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// running reports whether there is a command that has been started and has not ended.
func (c *Command) running() bool {
	if c == nil {
		return false
	}
	select {
	case <-c.starting:
		<-c.started // very soon
	default:
		return false
	}
	select {
	case <-c.Ended:
		return false
	default:
		return true
	}
}

// Inherited holds the state that ksnoop changes for itself and its command must
// inherit.
type Inherited struct {
	hugePages  bool // whether they were allowed
	memlock    unix.Rlimit
	interrupts *interrupts // nil if SIGINT was not ignored
}

// Inherit saves the state before anything is changed, and then disables huge pages,
// which round the heap up by 2 MB here and there. If the kernel cannot disable
// them, ksnoop takes more memory.
func Inherit() Inherited {
	own := Inherited{interrupts: heedInterrupts()}
	disabled, err := unix.PrctlRetInt(unix.PR_GET_THP_DISABLE, 0, 0, 0, 0)
	own.hugePages = err == nil && disabled == 0
	_ = unix.Getrlimit(unix.RLIMIT_MEMLOCK, &own.memlock) // never fails
	if own.hugePages {
		setHugePages(false)
	}
	return own
}

func setHugePages(allowed bool) {
	disable := uintptr(1)
	if allowed {
		disable = 0
	}
	_ = unix.Prctl(unix.PR_SET_THP_DISABLE, disable, 0, 0, 0)
}

// giveBack restores the inherited state, until restore is called.
func (own Inherited) giveBack() (restore func()) {
	var raised unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_MEMLOCK, &raised) // never fails
	_ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &own.memlock)
	if own.interrupts != nil {
		signal.Ignore(os.Interrupt) // a SIGINT within this millisecond is lost
	}
	if own.hugePages {
		setHugePages(true)
	}
	return func() {
		// Before 5.11 it counts programs, too, and those that read tables are
		// loaded when the first table is shown.
		_ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &raised)
		if own.interrupts != nil {
			own.interrupts.notify()
		}
		if own.hugePages {
			setHugePages(false)
		}
	}
}
