package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/runtime"
)

// did is a session that notes what is done to it.
type did []string

func (d *did) Stop() error {
	*d = append(*d, "stop")
	return nil
}

func (d *did) RemoveEvents() error {
	*d = append(*d, "remove events")
	return nil
}

// stopper is one that notes what it does.
func (d *did) stopper(c *command) *stopper {
	return &stopper{
		session: d, command: c,
		hurry: func() { *d = append(*d, "hurry") },
		kill:  func(sig syscall.Signal) { *d = append(*d, sig.String()) },
	}
}

// The first signal stops the session. The second one ends ksnoop, after what
// would outlive it is gone.
func TestSignals(t *testing.T) {
	var d did
	s := d.stopper(nil)
	s.take(syscall.SIGINT)
	require.Equal(t, did{"stop", "hurry"}, d)
	s.take(syscall.SIGTERM)
	require.Equal(t, did{"stop", "hurry", "remove events", "terminated"}, d)
}

// While a command runs, signals of the terminal are its own, and SIGTERM is
// passed on to it.
func TestSignalsOfCommand(t *testing.T) {
	c := &command{cmd: exec.Command("cat"), starting: make(chan struct{}), started: make(chan struct{}), ended: make(chan struct{})}
	input, err := c.cmd.StdinPipe() // it waits for more
	require.NoError(t, err)
	defer input.Close()
	var d did
	s := d.stopper(c)
	require.NoError(t, c.start())
	s.take(syscall.SIGINT)
	s.take(syscall.SIGQUIT)
	s.take(syscall.SIGHUP)
	require.True(t, c.running())
	s.take(syscall.SIGTERM)
	c.wait(func() { _ = d.Stop() })
	require.Equal(t, exitSignal+int(syscall.SIGTERM), c.status)
	require.Equal(t, did{"stop"}, d)
	s.take(syscall.SIGINT) // what is shown is not read
	require.Equal(t, did{"stop", "remove events", "interrupt"}, d)
}

func TestStoppedStatus(t *testing.T) {
	s := new(did).stopper(nil)
	s.take(syscall.SIGINT)
	err := s.explain(fmt.Errorf("attach: %w", runtime.ErrStopped))
	var stderr bytes.Buffer
	require.Equal(t, 130, fail(&stderr, err))
	require.Equal(t, "ksnoop: ended by SIGINT while attaching: nothing was traced\n", stderr.String())
	require.Equal(t, os.ErrClosed, s.explain(os.ErrClosed))
}
