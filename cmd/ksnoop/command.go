package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Exit statuses of a shell for commands that it cannot run.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
	exitSignal        = 128 // plus the number of the signal that a command died of
)

// statusError ends ksnoop with a status of its own.
type statusError struct {
	status int
	reason error // nil: there is nothing to say
}

func (e statusError) Error() string {
	if e.reason == nil {
		return fmt.Sprintf("the command has ended with status %d", e.status)
	}
	return e.reason.Error()
}

// command is what stands behind --: it is run while ksnoop traces.
type command struct {
	cmd   *exec.Cmd
	own   inherited
	group bool // it has a process group of its own, which the keys of a terminal do not reach
	// What has happened to it.
	starting, started, ended chan struct{}

	status int // valid when it has ended
}

// findCommand finds the program of the command line's command; nil: there is
// no command.
func findCommand(c *invocation) (*command, error) {
	if args := c.behind; len(args) > 0 {
		return findProgram(c, args)
	}
	return nil, nil
}

// findProgram finds the program of a command.
func findProgram(c *invocation, args []string) (*command, error) {
	path, err := exec.LookPath(args[0])
	if err != nil && !errors.Is(err, exec.ErrDot) { // a shell runs those, too
		return nil, cannotRun(args[0], err)
	}
	cmd := &exec.Cmd{Path: path, Args: args, Stdin: c.stdin, Stdout: fileOf(c.stdout), Stderr: fileOf(c.stderr)}
	return &command{cmd: cmd, own: c.own, starting: make(chan struct{}), started: make(chan struct{}), ended: make(chan struct{})}, nil
}

// cannotRun says why, with the status that a shell has for it.
func cannotRun(name string, err error) error {
	var in *exec.Error
	if errors.As(err, &in) {
		err = in.Err
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	status := exitNotExecutable
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		status = exitNotFound
	}
	if errors.Is(err, exec.ErrNotFound) {
		err = errors.New("there is no such program in $PATH")
	}
	return statusError{status, fmt.Errorf("run %s: %w", name, err)}
}

// start starts the command as if ksnoop had not been there.
func (c *command) start() error {
	close(c.starting)
	defer close(c.started)
	restore := c.own.giveBack()
	err := c.cmd.Start()
	restore()
	if err != nil {
		close(c.ended)
		return cannotRun(c.cmd.Args[0], err)
	}
	return nil
}

// wait waits for the end, then calls done.
func (c *command) wait(done func()) {
	err := c.cmd.Wait()
	c.status = statusOf(c.cmd.ProcessState)
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		c.status = exitFailure // its input or output could not be copied
	}
	close(c.ended)
	done()
}

// ownGroup gives the command a process group, so that all of it can be ended.
func (c *command) ownGroup() {
	c.group = true
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// signal sends a signal to the command, or to its group, unless it has ended.
func (c *command) signal(sig syscall.Signal) {
	if c.group {
		_ = syscall.Kill(-c.cmd.Process.Pid, sig)
		return
	}
	_ = c.cmd.Process.Signal(sig)
}

// end ends the command: if it does not end by itself in time, for sure.
func (c *command) end(patience time.Duration) {
	c.signal(syscall.SIGTERM)
	select {
	case <-c.ended:
		return
	case <-time.After(patience):
	}
	c.signal(syscall.SIGKILL)
	<-c.ended
}

// statusOf is the status that a shell gives to an end.
func statusOf(state *os.ProcessState) int {
	ws := state.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return exitSignal + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// running says whether there is a command that has been started and not ended.
func (c *command) running() bool {
	if c == nil {
		return false
	}
	select {
	case <-c.starting:
		<-c.started // in no time
	default:
		return false
	}
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

// inherited is what a command inherits that ksnoop changes for itself.
type inherited struct {
	hugePages bool // were allowed
	memlock   unix.Rlimit
}

// keepInherited looks at it before anything is changed, and then does without
// huge pages, which round the heap up by 2 MB here and there. If the kernel
// will not do without them, ksnoop takes more memory.
func keepInherited() inherited {
	var own inherited
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

// giveBack makes it what it was, until restore is called for what matters to
// ksnoop. The limit of locked memory does no longer: before 5.11 it is raised
// for maps, and all are made.
func (own inherited) giveBack() (restore func()) {
	_ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &own.memlock)
	if !own.hugePages {
		return func() {}
	}
	setHugePages(true)
	return func() { setHugePages(false) }
}
