//go:build linux

package e2e

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// testAttachingStopped checks that a session that is stopped while it attaches
// attaches nothing more, and then removes everything that it has attached.
func testAttachingStopped(t *testing.T, k *kernel, functions []string) {
	functions = append([]string{getpgid}, functions[:3]...)
	for _, tc := range stopCases {
		if !supports(k.target().Features, tc.kind) {
			continue
		}
		t.Run(tc.name(), func(t *testing.T) {
			before := bpfObjects(t)
			s := load(t, newMany(tc.kind, tc.instances, functions), k.Kernel)
			var steps []int
			s.Progress = func(done, total int) {
				require.Equal(t, len(functions), total)
				steps = append(steps, done)
				if done > 0 {
					callKernel(getpgid, 5)
					require.NoError(t, s.Stop())
				}
			}
			_, err := s.Attach()
			require.ErrorIs(t, err, runtime.ErrStopped)
			require.Equal(t, tc.steps(len(functions)), steps)
			require.NotZero(t, hits(t, s)[0])
			s.Progress = nil
			require.NoError(t, s.Detach())
			counted := hits(t, s)
			callKernel(getpgid, 5)
			require.Equal(t, counted, hits(t, s))
			require.NoError(t, s.Close())
			requireNothingLeft(t, before)
		})
	}
}

// A stopCase is an attach kind, which attaches each function in a step of its
// own or all functions in one step.
type stopCase struct {
	kind      compiler.Kind
	instances int
}

var stopCases = []stopCase{
	{compiler.Fentry, 0}, {compiler.Kprobe, 0}, {compiler.Kretprobe, 0}, {compiler.Kretprobe, 64}, {compiler.KprobeMulti, 0}, {compiler.KprobeSession, 0},
}

func (c stopCase) name() string { return fmt.Sprintf("%s %d", c.kind, c.instances) }

// steps returns the numbers of attached functions that Session.Progress
// reports, if the session is stopped after the first step.
func (c stopCase) steps(functions int) []int {
	if c.kind.Multi() {
		return []int{0, functions}
	}
	return []int{0, 1}
}

// testAttachingAbandoned checks that a session that is abandoned while it
// detaches leaves nothing in tracefs.
func testAttachingAbandoned(t *testing.T, k *kernel, functions []string) {
	before := bpfObjects(t)
	c := newMany(compiler.Kretprobe, 64, functions[:3]) // there are no counters for the kprobes below
	for i, name := range functions[3:6] {
		c.attach(compiler.Kprobe, 0, compiler.Place{Probe: c.probe(name), Symbol: name, Cookie: uint64(3 + i)})
	}
	s := load(t, c, k.Kernel)
	_, err := s.Attach()
	require.NoError(t, err)
	require.NotEmpty(t, kprobeEvents(t))
	left := -1
	s.Progress = func(done, total int) {
		if done == 1 {
			require.NoError(t, s.RemoveEvents())
			require.Empty(t, kprobeEvents(t))
			left = 0
		}
		if left >= 0 {
			left++
		}
	}
	require.NoError(t, s.Close())
	require.Equal(t, 1+3, left) // the kprobes still existed
	requireNothingLeft(t, before)
}

// testAttachingKilled checks that two signals end a ksnoop that hangs, here
// because nothing reads its output.
func testAttachingKilled(t *testing.T, _ *kernel, functions []string) {
	before := bpfObjects(t)
	full := newFullPipe(t)
	cmd, stderr := startKsnoop(t, full, "-v", "--attach", "kprobe", functions[0]+"(return)", functions[1])
	awaitLine(t, stderr, "ksnoop: attached 2 of 2 probes")
	require.NotEmpty(t, kprobeEvents(t))
	require.NoError(t, cmd.Process.Signal(unix.SIGINT))
	require.NoError(t, cmd.Process.Signal(unix.SIGTERM)) // a second SIGINT could merge with the first
	require.Error(t, cmd.Wait())
	// Two threads may take the two signals, in any order.
	require.Contains(t, []string{"signal: terminated", "signal: interrupt"}, cmd.ProcessState.String())
	requireNothingLeft(t, before)
}

// testAttachingInterrupted checks that a signal ends ksnoop while it attaches.
// ksnoop blocks there on a pipe that is mounted over a file of tracefs.
func testAttachingInterrupted(t *testing.T, _ *kernel, functions []string) {
	const events = "/sys/kernel/tracing/kprobe_events"
	before := bpfObjects(t)
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	require.NoError(t, unix.Mount(pipe, events, "", unix.MS_BIND, ""))
	args := []string{"--attach", "kprobe"}
	for _, name := range functions[:8] {
		args = append(args, name+"(return)")
	}
	cmd, stderr := startKsnoop(t, nil, args...)
	var attaching *os.File
	require.Eventually(t, func() (open bool) {
		var err error
		attaching, err = os.OpenFile(pipe, os.O_WRONLY|unix.O_NONBLOCK, 0) // fails until ksnoop opens the pipe
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(unix.SIGINT))
	require.NoError(t, unix.Unmount(events, unix.MNT_DETACH))
	require.NoError(t, attaching.Close())
	said, err := io.ReadAll(stderr)
	require.NoError(t, err)
	require.Error(t, cmd.Wait())
	require.Equal(t, "ksnoop: ended by SIGINT while attaching: nothing was traced\n", string(said))
	require.Equal(t, 130, cmd.ProcessState.ExitCode())
	requireNothingLeft(t, before)
}
