//go:build linux

package e2e

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/e2e/guest"
	"github.com/ksnoop/ksnoop/e2e/vm"
)

var (
	soak    = flag.Int("soak", 0, "how many calls TestSoak makes beside two tracers; 0: 45000, or 450000 with -full")
	soakFor = flag.Duration("soak-for", 0, "make so many calls again and again, for so long")
)

// soakCalls returns the number of calls of each thread.
func soakCalls() int { return cmp.Or(*soak, rounds(45_000, 450_000)) / soakReaders }

// soakReaders is the number of threads that make the calls.
const soakReaders = 3

// soakSize is the count of their reads, in bytes. No other process uses it.
const soakSize = 4321

// TestSoak runs two tracers at once beside busy threads, also where tasks are
// preempted inside the kernel, and checks that they miss no call, and need no more memory
// however many they have shown.
func TestSoak(t *testing.T) {
	onlyWithFull(t)
	t.Parallel()
	machines := []struct{ kernel, model string }{{"newest", "lazy"}, {"6.12", "full"}, {"6.12", "voluntary"}}
	for _, m := range machines {
		t.Run(m.kernel+" "+m.model, func(t *testing.T) {
			t.Parallel()
			testOn(t, m.kernel, vm.Machine{Append: "preempt=" + m.model}, "^TestGuestSoak$")
		})
	}
}

// soakTracers lists the arguments of the two tracers.
var soakTracers = [][]string{
	{"vfs_read(file, count, return < 0)", "ksys_read", "do_sys_openat2"},
	{"-s", "vfs_read", "rw_verify_area"},
}

// TestGuestSoak runs in the machines that TestSoak boots.
func TestGuestSoak(t *testing.T) {
	if !guest.Inside() {
		t.Skip("runs inside a virtual machine, see TestSoak")
	}
	var tracers []*soaker
	for _, specs := range soakTracers {
		tracers = append(tracers, startSoaker(t, specs...))
	}
	zero, err := unix.Open("/dev/null", unix.O_RDONLY, 0)
	require.NoError(t, err)
	defer unix.Close(zero)
	read := func(calls int) {
		threads(t, soakReaders, func(int) error {
			buf := make([]byte, soakSize)
			for range calls {
				if _, err := unix.Read(zero, buf); err != nil {
					return err
				}
			}
			return nil
		})
	}
	awaitNames(t, tracers)
	read(soakCalls() / 10)
	var early []float64
	for _, s := range tracers {
		early = append(early, s.memory(t))
	}
	start := time.Now()
	for again := true; again; again = time.Since(start) < *soakFor {
		read(soakCalls())
		for _, s := range tracers {
			s.discard(t)
		}
	}
	for i, s := range tracers {
		t.Logf("%.0f KiB of its own after a tenth of the calls, then %.0f", early[i], s.memory(t))
		require.LessOrEqual(t, s.memory(t), memoryIncrease*early[i]+soakNoise)
		s.end(t)
	}
}

// awaitNames makes calls with a pointer to a variable until both tracers name it: then
// they have read the kernel's symbols, which take half of their memory.
func awaitNames(t *testing.T, tracers []*soaker) {
	empty, err := unix.Eventfd(0, unix.EFD_NONBLOCK)
	require.NoError(t, err)
	defer unix.Close(empty)
	require.Eventually(t, func() bool {
		_, err := unix.Read(empty, make([]byte, 8))
		return err == unix.EAGAIN && !slices.ContainsFunc(tracers, func(s *soaker) bool { return !s.named(t) })
	}, time.Minute, 20*time.Millisecond)
}

// soakNoise is the memory in KiB by which a tracer may have grown besides
// [memoryIncrease]: the Go runtime collects garbage when it will.
const soakNoise = 1024

// A soaker is a ksnoop whose events are discarded.
type soaker struct {
	cmd *exec.Cmd
	// events has its output. It is a file in memory and no pipe: all reads of the
	// system are traced, and those of a pipe would make more events, without end.
	events *os.File
	stderr bytes.Buffer
}

func startSoaker(t *testing.T, specs ...string) *soaker {
	s := &soaker{}
	ready, told, err := os.Pipe()
	require.NoError(t, err)
	defer ready.Close()
	s.cmd = exec.Command("/bin/ksnoop", append([]string{"trace", "--summary", "--ready-fd", "3"}, specs...)...)
	events, err := unix.MemfdCreate("events", unix.MFD_CLOEXEC)
	require.NoError(t, err)
	s.events = os.NewFile(uintptr(events), "events")
	s.cmd.ExtraFiles, s.cmd.Stdout, s.cmd.Stderr = []*os.File{told}, s.events, &s.stderr
	require.NoError(t, s.cmd.Start())
	told.Close()
	t.Cleanup(func() {
		s.cmd.Process.Kill()
		s.events.Close()
	})
	require.NoError(t, ready.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err = ready.Read(make([]byte, 1))
	require.NoError(t, err, "%s", &s.stderr)
	return s
}

// named reports whether an event has had the name of a variable.
func (s *soaker) named(t *testing.T) bool {
	text, err := io.ReadAll(io.NewSectionReader(s.events, 0, math.MaxInt64))
	require.NoError(t, err)
	return bytes.Contains(text, []byte("_fops>"))
}

// discard frees the memory of the events.
func (s *soaker) discard(t *testing.T) {
	info, err := s.events.Stat()
	require.NoError(t, err)
	require.NoError(t, unix.Fallocate(int(s.events.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, max(1, info.Size())))
}

// memory returns the memory in KiB that the tracer has for itself alone.
func (s *soaker) memory(t *testing.T) float64 {
	return numberIn(t, fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid), "RssAnon:")
}

// end stops the tracer and reads its table of counters.
func (s *soaker) end(t *testing.T) {
	memory := numberIn(t, fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid), "VmHWM:")
	require.NoError(t, s.cmd.Process.Signal(unix.SIGTERM))
	require.NoError(t, s.cmd.Wait(), "%s", &s.stderr)
	text := s.stderr.String()
	t.Logf("%.0f KiB\n%s", memory, text)
	require.NotContains(t, text, "ksnoop: missed")
	hits := regexp.MustCompile(`(?m)^  vfs_read +\w+ +\S+ +(\d+)`).FindAllStringSubmatch(text, -1)
	require.NotEmpty(t, hits)
	for _, h := range hits {
		n, err := strconv.Atoi(h[1])
		require.NoError(t, err)
		require.GreaterOrEqual(t, n, soakReaders*soakCalls(), h[0])
	}
}
