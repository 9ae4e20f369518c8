package run

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/runtime"
)

// did is a session that records what is done to it.
type did []string

func (d *did) Stop() error {
	*d = append(*d, "stop")
	return nil
}

func (d *did) RemoveEvents() error {
	*d = append(*d, "remove events")
	return nil
}

// stopper returns a stopper that records what it does.
func (d *did) stopper(c *Command) *stopper {
	return &stopper{
		session: d, command: c,
		hurry: func() { *d = append(*d, "hurry") },
		kill:  func(sig syscall.Signal) { *d = append(*d, sig.String()) },
	}
}

// TestSignals verifies that the first signal stops the session, and that the second
// one ends ksnoop, after removing what would outlive it.
func TestSignals(t *testing.T) {
	var d did
	s := d.stopper(nil)
	s.take(syscall.SIGINT)
	require.Equal(t, did{"stop", "hurry"}, d)
	s.take(syscall.SIGTERM)
	require.Equal(t, did{"stop", "hurry", "remove events", "terminated"}, d)
}

// TestReadyFileAtSignal verifies that the second signal, which ends ksnoop at once, removes
// the ready file, and that the first one leaves it until the end.
func TestReadyFileAtSignal(t *testing.T) {
	var d did
	s := d.stopper(nil)
	s.ready = &Ready{file: filepath.Join(t.TempDir(), "ready")}
	require.NoError(t, s.ready.Tell(io.Discard))
	s.take(syscall.SIGTERM)
	require.FileExists(t, s.ready.file)
	s.kill = func(syscall.Signal) { require.NoFileExists(t, s.ready.file) }
	s.take(syscall.SIGINT)
	require.NoFileExists(t, s.ready.file)
}

// TestQuit verifies that SIGQUIT ends a run as SIGINT does, and that the second one ends
// ksnoop without Go's list of stacks.
func TestQuit(t *testing.T) {
	if os.Getenv("KSNOOP_QUIT") != "" {
		s := StopOnSignal(new(did), nil, nil, Inherited{}, func() {})
		_ = syscall.Kill(os.Getpid(), syscall.SIGQUIT)
		s.takeSent(syscall.SIGQUIT)
		fmt.Println("after", s.signal())
		time.Sleep(oneRequest)
		_ = syscall.Kill(os.Getpid(), syscall.SIGQUIT)
		select {}
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestQuit$")
	cmd.Env = append(os.Environ(), "KSNOOP_QUIT=1")
	out, err := cmd.CombinedOutput()
	require.EqualError(t, err, "exit status 131", "%s", out)
	require.Equal(t, "after quit\n", string(out))
}

// TestSignalTwice verifies that a signal that comes twice at once, as from timeout(1),
// only stops the session.
func TestSignalTwice(t *testing.T) {
	var d did
	s := d.stopper(nil)
	s.take(syscall.SIGTERM)
	s.take(syscall.SIGTERM)
	require.Equal(t, did{"stop", "hurry"}, d)
	s.at = s.at.Add(-oneRequest)
	s.take(syscall.SIGTERM)
	require.Equal(t, did{"stop", "hurry", "remove events", "terminated"}, d)
}

// TestSignalsOfCommand verifies that while a command runs, signals of the terminal
// are left to it, and SIGTERM is passed on to it.
func TestSignalsOfCommand(t *testing.T) {
	c := &Command{Cmd: exec.Command("cat"), starting: make(chan struct{}), started: make(chan struct{}), Ended: make(chan struct{})}
	input, err := c.Cmd.StdinPipe() // the command waits for more input
	require.NoError(t, err)
	defer input.Close()
	var d did
	s := d.stopper(c)
	require.NoError(t, c.Start())
	s.take(syscall.SIGINT)
	s.take(syscall.SIGQUIT)
	s.take(syscall.SIGHUP)
	require.True(t, c.running())
	s.take(syscall.SIGTERM)
	c.Wait(func() { _ = d.Stop() })
	require.Equal(t, exit.Signal+int(syscall.SIGTERM), c.Status)
	require.Equal(t, did{"stop"}, d)
	s.take(syscall.SIGINT) // the output is not read
	require.Equal(t, did{"stop", "remove events", "interrupt"}, d)
}

// TestKeysAtTheEndOfCommand verifies that what a key of the terminal sends while a
// command ends is not taken for the user's first and second signal after it.
func TestKeysAtTheEndOfCommand(t *testing.T) {
	defer signal.Reset()
	for range 50 {
		c, err := FindProgram([]string{"sh", "-c", "trap '' INT; kill -INT $PPID; kill -QUIT $PPID; kill -INT $PPID"}, Inherited{}, &term.Streams{})
		require.NoError(t, err)
		var d did
		s := StopOnSignal(&d, c, nil, Inherited{}, func() {})
		require.NoError(t, c.Start())
		c.Wait(func() {})
		s.settle() // what came after the end has been taken, too
		require.Zero(t, s.signal())
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGINT)) // the user's
		for s.signal() == 0 {
			goruntime.Gosched()
		}
		signal.Stop(s.signals)
	}
}

func TestStoppedStatus(t *testing.T) {
	s := new(did).stopper(nil)
	s.take(syscall.SIGINT)
	err := s.Explain(fmt.Errorf("attach: %w", runtime.ErrStopped))
	var ended exit.StatusError
	require.ErrorAs(t, err, &ended)
	require.Equal(t, 130, ended.Status)
	require.EqualError(t, ended.Reason, "ended by SIGINT while attaching: nothing was traced")
	require.Equal(t, os.ErrClosed, s.Explain(os.ErrClosed))
}

// TestInterruptInBackgroundOfCommand verifies that a SIGINT ends ksnoop and a
// command that ignores SIGINT, if ksnoop was started with SIGINT ignored.
func TestInterruptInBackgroundOfCommand(t *testing.T) {
	c := &Command{Cmd: exec.Command("cat"), starting: make(chan struct{}), started: make(chan struct{}), Ended: make(chan struct{})}
	input, err := c.Cmd.StdinPipe()
	require.NoError(t, err)
	defer input.Close()
	c.own.interrupts = &interrupts{signals: make(chan os.Signal, 2)}
	c.own.interrupts.notify()
	defer signal.Reset(os.Interrupt)
	var d did
	s := d.stopper(c)
	s.background = true
	require.NoError(t, c.Start())
	require.NoError(t, c.Cmd.Process.Signal(os.Interrupt)) // ignored
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGINT))
	s.take((<-c.own.interrupts.signals).(syscall.Signal))
	c.Wait(func() {})
	require.Equal(t, exit.Signal+int(syscall.SIGTERM), c.Status)
}

// TestSignalBeforeAttached verifies that a signal that was sent before everything is
// attached is not taken for one that ends the trace.
func TestSignalBeforeAttached(t *testing.T) {
	defer signal.Reset()
	for i := range 200 {
		s := StopOnSignal(new(did), nil, nil, Inherited{}, func() {})
		require.False(t, s.came())
		sig := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT}[i%3]
		require.NoError(t, syscall.Kill(os.Getpid(), sig))
		require.True(t, s.came())
		require.Equal(t, sig, s.signal())
		signal.Stop(s.signals)
	}
}

// TestHasPending verifies that a signal of the whole process is waited for, whatever its
// first thread does, and one of a thread only if that can be in a handler.
func TestHasPending(t *testing.T) {
	status := filepath.Join(t.TempDir(), "status")
	for _, state := range []string{"S (sleeping)", "D (disk sleep)"} {
		text := "Name:\tksnoop\nState:\t" + state + "\nSigPnd:\t0000000000400000\nShdPnd:\t0000000000000002\n"
		require.NoError(t, os.WriteFile(status, []byte(text), 0o600))
		require.True(t, hasPending(status, "ShdPnd", syscall.SIGINT))
		require.False(t, hasPending(status, "ShdPnd", syscall.SIGTERM))
		require.Equal(t, state[0] == 'S', hasPending(status, "SigPnd", syscall.SIGURG))
	}
	require.False(t, hasPending(status+"-gone", "SigPnd", syscall.SIGURG))
}

// TestKeysWhileSettling verifies that ksnoop outlives keys of the terminal that come while
// it takes those of a command that has ended. Only the first time of a process can fail,
// so processes of their own do it.
func TestKeysWhileSettling(t *testing.T) {
	if os.Getenv("KSNOOP_SETTLE") != "" {
		settleUnderKeys()
		return
	}
	for range 10 {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestKeysWhileSettling$")
		cmd.Env = append(os.Environ(), "KSNOOP_SETTLE=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
}

// settleUnderKeys settles once while two threads send SIGINT. On one CPU they end first:
// settle waits for what was sent before, which it cannot tell from what comes next.
func settleUnderKeys() {
	c := &Command{starting: make(chan struct{}), started: make(chan struct{}), Ended: make(chan struct{})}
	close(c.starting)
	close(c.started)
	s := StopOnSignal(new(did), c, nil, Inherited{}, func() {})
	var sending sync.WaitGroup
	var sent atomic.Int32
	var settled atomic.Bool
	for range 2 {
		sending.Go(func() {
			for !settled.Load() && sent.Load() < 200_000 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGINT)
				sent.Add(1)
			}
		})
	}
	for sent.Load() < 100 {
		goruntime.Gosched()
	}
	s.settle()
	settled.Store(true)
	sending.Wait()
}
