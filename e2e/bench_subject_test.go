//go:build linux

package e2e

import (
	"bytes"
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

// An invocation is the command line and environment of a tracer.
type invocation struct {
	path   string
	args   []string
	env    []string
	tells  bool           // it has an option --ready-fd, and writes there when it is attached
	marker *regexp.Regexp // matches once in each event that it prints
	piped  bool           // its output goes through a pipe
}

// A subject is a tracer whose costs are measured. It runs in its own process
// and writes to a file, or to a pipe from which a thread moves it there.
type subject struct {
	invocation
	cmd    *exec.Cmd
	out    string
	ended  chan struct{}
	moved  chan struct{} // closed when all of a pipe is in the file; nil without a pipe
	ready  *os.File      // the read end of --ready-fd
	busy   bool          // it never stops printing, though the calls have ended
	stderr bytes.Buffer
}

// watchInterval is the time between two checks of a subject that works alone.
// No event takes as long.
const watchInterval = 20 * time.Millisecond

// restless is a number of such intervals in which a subject finishes any finite work.
const restless = 500

// start starts a tracer.
func (i invocation) start(t *testing.T) *subject {
	s := &subject{invocation: i, out: filepath.Join(t.TempDir(), "out"), ended: make(chan struct{})}
	out, err := os.Create(s.out)
	require.NoError(t, err)
	defer out.Close()
	if i.piped {
		out = s.pipeTo(t, out)
		defer out.Close()
	}
	s.run(t, out)
	return s
}

// pipeTo returns the end of a pipe to write to. What comes is moved to the file by
// splice(2): other system calls that read a pipe call vfs_read, which is traced.
func (s *subject) pipeTo(t *testing.T, file *os.File) *os.File {
	var pipe [2]int
	require.NoError(t, unix.Pipe2(pipe[:], unix.O_CLOEXEC))
	to, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	require.NoError(t, err)
	s.moved = make(chan struct{})
	go func() {
		defer close(s.moved)
		defer unix.Close(pipe[0])
		defer unix.Close(to)
		for {
			n, err := unix.Splice(pipe[0], nil, to, nil, 1<<16, 0)
			if err != unix.EINTR && n <= 0 { // whoever counts the events notices a loss
				return
			}
		}
	}()
	return os.NewFile(uintptr(pipe[1]), "pipe")
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
		s.cmd.Wait() // failure reads the status from ProcessState
		close(s.ended)
	}()
	t.Cleanup(func() { s.cmd.Process.Kill() })
}

// attached waits until every probe is attached.
func (s *subject) attached() error {
	if s.ready != nil {
		defer s.ready.Close()
		if n, _ := s.ready.Read(make([]byte, 2)); n == 1 { // count 2, because reads with count 1 are traced
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

// waits reports whether the tracer waits for events. The peers attach
// everything before they do. It does not call vfs_read, because a tracer that
// prints all calls of vfs_read would get more to print with each check and
// never wait.
func (s *subject) waits() bool {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/syscall", s.cmd.Process.Pid), unix.O_RDONLY, 0)
	if err != nil { // the tracer has ended
		return false
	}
	defer unix.Close(fd)
	text := make([]byte, 32)
	n, _ := unix.Readv(fd, [][]byte{text})
	number, _, _ := strings.Cut(string(text[:max(n, 0)]), " ")
	return number == fmt.Sprint(epollWait)
}

// failure returns an error with the reason why the tracer has ended.
func (s *subject) failure() error {
	said, _ := os.ReadFile(s.out)
	lines := strings.Split(strings.TrimSpace(s.stderr.String()+string(said)), "\n")
	return fmt.Errorf("%s: %v: %s", filepath.Base(s.path), s.cmd.ProcessState, lines[0])
}

// pause stops the tracer, so that its own work is not measured with a call.
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

// resume continues the tracer and waits until it has nothing more to print.
func (s *subject) resume() {
	s.cmd.Process.Signal(syscall.SIGCONT)
	s.settle()
}

// settle waits until the output no longer grows. It sets busy if it still grows
// after many times the duration of a flood: other processes then make such
// calls all the time.
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

// instructions returns the number of instructions that the process has
// executed, in user mode and in the kernel. It reads the process's CPU clock;
// see the function instructions.
func (s *subject) instructions() int64 {
	const sched = 2
	var ts unix.Timespec
	unix.ClockGettime(int32(^s.cmd.Process.Pid<<3|sched), &ts)
	return ts.Nano()
}

// lost matches the messages of tracers about lost events.
var lost = regexp.MustCompile(`(?i)\blost \d+`)

// end ends the tracer and returns how many events it has printed. It must not have
// lost any.
func (s *subject) end() (events int, err error) {
	said, err := s.stop()
	if err == nil && lost.MatchString(s.stderr.String()+string(said)) {
		err = s.failure()
	}
	if err != nil {
		return 0, err
	}
	return s.count(said)
}

// finish ends the tracer and returns how many events it has printed. It may have lost
// others.
func (s *subject) finish() (events int, err error) {
	said, err := s.stop()
	if err != nil {
		return 0, err
	}
	return s.count(said)
}

func (s *subject) count(said []byte) (int, error) {
	return len(s.marker.FindAllIndex(said, -1)), os.Remove(s.out)
}

// stop ends the tracer and returns what it has printed.
func (s *subject) stop() (said []byte, err error) {
	s.cmd.Process.Signal(os.Interrupt)
	<-s.ended
	if s.moved != nil {
		<-s.moved
	}
	said, err = os.ReadFile(s.out)
	switch {
	case err != nil:
		return nil, err
	case s.busy:
		return nil, fmt.Errorf("%s does not come to rest", s.path)
	case !s.cmd.ProcessState.Success():
		return nil, s.failure()
	}
	return said, nil
}
