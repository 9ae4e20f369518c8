//go:build linux

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// An invocation is how a tracer is started.
type invocation struct {
	path   string
	args   []string
	env    []string
	tells  bool           // when it is attached, with an option --ready-fd
	marker *regexp.Regexp // matches once in each event that it prints
}

// A subject is a tracer whose costs are measured: a process of its own, which
// writes to a file.
type subject struct {
	invocation
	cmd    *exec.Cmd
	out    string
	ended  chan struct{}
	ready  *os.File // where it tells
	busy   bool     // it goes on printing, with nothing to print
	stderr bytes.Buffer
}

// watchInterval is how often a subject is looked at while it works alone. It is
// long for any event.
const watchInterval = 20 * time.Millisecond

// restless is how many such intervals are more than any work takes.
const restless = 500

// start starts a tracer that writes to a file.
func (i invocation) start(t *testing.T) *subject {
	s := &subject{invocation: i, out: filepath.Join(t.TempDir(), "out"), ended: make(chan struct{})}
	out, err := os.Create(s.out)
	require.NoError(t, err)
	defer out.Close()
	s.run(t, out)
	return s
}

func (s *subject) run(t *testing.T, stdout *os.File) {
	s.cmd = exec.Command(s.path, s.args...)
	s.cmd.Env = append(os.Environ(), s.env...)
	s.cmd.Stdout, s.cmd.Stderr = stdout, &s.stderr
	if s.tells {
		ready, write, err := os.Pipe()
		require.NoError(t, err)
		defer write.Close()
		s.ready, s.cmd.ExtraFiles = ready, []*os.File{write}
		s.cmd.Args = append(s.cmd.Args, "--ready-fd", "3")
	}
	require.NoError(t, s.cmd.Start())
	go func() {
		s.cmd.Wait() // its status is looked at when it has ended
		close(s.ended)
	}()
	t.Cleanup(func() { s.cmd.Process.Kill() })
}

// attached waits until every probe is attached.
func (s *subject) attached() error {
	if s.ready != nil {
		defer s.ready.Close()
		if n, _ := s.ready.Read(make([]byte, 2)); n == 1 { // not a read that is traced
			return nil
		}
		<-s.ended
		return s.failure()
	}
	for !s.waits() {
		select {
		case <-s.ended:
			return s.failure()
		default:
			nap(time.Millisecond)
		}
	}
	return nil
}

// waits says whether it waits for events, before which the peers have attached
// everything. It looks without a call of vfs_read: one that prints all of them
// would have more to print with each look than it can until the next, and never
// wait.
func (s *subject) waits() bool {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/syscall", s.cmd.Process.Pid), unix.O_RDONLY, 0)
	if err != nil { // it has ended
		return false
	}
	defer unix.Close(fd)
	text := make([]byte, 32)
	n, _ := unix.Readv(fd, [][]byte{text})
	number, _, _ := strings.Cut(string(text[:max(n, 0)]), " ")
	return number == fmt.Sprint(unix.SYS_EPOLL_WAIT)
}

// failure is why it has ended.
func (s *subject) failure() error {
	said, _ := os.ReadFile(s.out)
	lines := strings.Split(strings.TrimSpace(s.stderr.String()+string(said)), "\n")
	return fmt.Errorf("%s: %v: %s", filepath.Base(s.path), s.cmd.ProcessState, lines[0])
}

// pause stops it, so that what it does is not measured with a call.
func (s *subject) pause() {
	s.cmd.Process.Signal(syscall.SIGSTOP)
	for !s.stopped() {
		nap(time.Millisecond)
	}
}

func (s *subject) stopped() bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", s.cmd.Process.Pid))
	for _, name := range threads {
		text, _ := os.ReadFile(name)
		if _, state, _ := strings.Cut(string(text), ") "); !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return true
}

// resume lets it go on, and waits until it has nothing more to print.
func (s *subject) resume() {
	s.cmd.Process.Signal(syscall.SIGCONT)
	s.settle()
}

// settle waits for that. What is still printed after many times the work of a
// flood is about calls that others make all the time.
func (s *subject) settle() {
	for range restless {
		size := s.printed()
		nap(watchInterval)
		if s.printed() == size {
			return
		}
	}
	s.busy = true
}

// nap sleeps without the Go runtime, which calls vfs_read in its own sleep.
func nap(d time.Duration) {
	ts := unix.NsecToTimespec(d.Nanoseconds())
	for unix.Nanosleep(&ts, &ts) == unix.EINTR {
	}
}

func (s *subject) printed() int64 {
	info, err := os.Stat(s.out)
	if err != nil {
		return 0
	}
	return info.Size()
}

// instructions is how many it has used, in user mode and in the kernel: the
// CPU clock of the process, see the meter's.
func (s *subject) instructions() int64 {
	const sched = 2
	var ts unix.Timespec
	unix.ClockGettime(int32(^s.cmd.Process.Pid<<3|sched), &ts)
	return ts.Nano()
}

// lost is what tracers say of events that they have lost.
var lost = regexp.MustCompile(`(?i)\blost \d+`)

// end ends it and returns how many events it has printed.
func (s *subject) end() (events int, err error) {
	s.cmd.Process.Signal(os.Interrupt)
	<-s.ended
	said, err := os.ReadFile(s.out)
	if err != nil {
		return 0, err
	}
	if s.busy {
		return 0, fmt.Errorf("%s does not come to rest", s.path)
	}
	if !s.cmd.ProcessState.Success() || lost.MatchString(s.stderr.String()+string(said)) {
		return 0, errors.Join(err, s.failure())
	}
	return len(s.marker.FindAllIndex(said, -1)), os.Remove(s.out)
}
