package main

import (
	"os"
	"time"

	"github.com/ksnoop/ksnoop/runtime"
)

// tracing is what is around a trace: when it begins and ends, and the command
// that runs meanwhile.
type tracing struct {
	bounds
	ready   *ready
	command *command // nil: none
	cgroup  *os.File // nil: all
}

// openTracing reads the command line and finds what can be missing, before
// anything is done in the kernel.
func openTracing(c *invocation) (t *tracing, err error) {
	t = &tracing{}
	if t.bounds, err = readBounds(c); err != nil {
		return nil, err
	}
	if err := checkTree(c); err != nil {
		return nil, err
	}
	if t.command, err = findCommand(c); err != nil {
		return nil, err
	}
	if c.IsSet("cgroup") {
		if t.cgroup, err = openCgroup(c.String("cgroup")); err != nil {
			return nil, err
		}
	}
	t.ready, err = openReady(c)
	return t, err
}

// checkTree refuses a tree without a root, or with two.
func checkTree(c *invocation) error {
	command := len(c.behind) > 0
	switch {
	case !c.Bool("tree"):
		return nil
	case c.IsSet("tid"):
		return usagef("--tree follows processes, and --tid is a thread: name its process with --pid")
	case c.IsSet("pid") && command:
		return usagef("--tree follows one process: that of --pid or the command behind --, not both")
	case !c.IsSet("pid") && !command:
		return usagef("--tree follows a process: name it with --pid, or let ksnoop start a command, as in ksnoop --tree vfs_read -- ls")
	}
	return nil
}

// restrict says what is to be traced, before anything is attached.
func (t *tracing) restrict(session *runtime.Session) error {
	if t.cgroup == nil {
		return nil
	}
	defer t.cgroup.Close()
	return session.TraceIn(t.cgroup)
}

// begin is called when everything is attached.
func (t *tracing) begin(session *runtime.Session) error {
	if err := t.ready.tell(); err != nil {
		return err
	}
	if t.command != nil {
		if err := session.FollowChildren(t.command.start); err != nil {
			return err
		}
		go t.command.wait(func() { session.Stop() })
	}
	if t.duration > 0 {
		time.AfterFunc(t.duration, func() { session.Stop() })
	}
	return nil
}

// events is where the events come from, as many as are wanted.
func (t *tracing) events(session *runtime.Session) eventSource {
	if t.bounds.events == 0 {
		return session
	}
	return &limited{session, t.bounds.events}
}

// end waits for the command, which goes on if tracing has ended before it, and
// has its status unless something went wrong.
func (t *tracing) end(session *runtime.Session, err error) error {
	if t.command == nil {
		return err
	}
	select {
	case <-t.command.ended:
	default:
		session.Close()
		<-t.command.ended
	}
	if err == nil && t.command.status != 0 {
		return statusError{t.command.status, nil}
	}
	return err
}
