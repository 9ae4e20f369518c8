package runtime

import (
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// attachable returns a loaded session of a spec that can be attached on the kernel that
// runs the tests.
func attachable(t *testing.T, text string) *Session {
	requireTracing(t)
	trace, err := spec.Parse(text)
	require.NoError(t, err)
	s, _ := loaded(t, trace)
	return s
}

// inTime waits for what a function sends. If that takes too long, it ends the tests and
// shows what all goroutines wait for: to clean up would hang, too.
func inTime(from <-chan error) error {
	select {
	case err := <-from:
		return err
	case <-time.After(20 * time.Second):
		panic("it hangs")
	}
}

// TestCloseWaitsForReader verifies that the reader gets what it needs while Close waits for
// it, and then the end.
func TestCloseWaitsForReader(t *testing.T) {
	s := attachable(t, "iter:task(count())")
	_, err := s.Attach()
	require.NoError(t, err)
	closed := make(chan error)
	s.reading.Lock() // as Read does
	go func() { closed <- s.Close() }()
	for !s.closing.Load() {
		time.Sleep(time.Millisecond)
	}
	got := make(chan error)
	go func() {
		s.iterators()
		got <- s.emptyTables() // as Again does
	}()
	require.NoError(t, inTime(got))
	s.reading.Unlock()
	require.NoError(t, inTime(closed))
	require.ErrorIs(t, s.Read(new(Event)), io.EOF)
}

// TestCloseWhileReading verifies that Close ends reading of iterators at any moment.
func TestCloseWhileReading(t *testing.T) {
	for i := range 20 {
		s := attachable(t, "iter:task(task->pid, count())")
		_, err := s.Attach()
		require.NoError(t, err)
		read := make(chan error)
		go func() {
			for ev := new(Event); ; {
				err := s.Read(ev)
				if err == io.EOF {
					err = s.Again(0)
				}
				if err != nil {
					read <- err
					return
				}
			}
		}()
		time.Sleep(time.Duration(i) * 100 * time.Microsecond)
		closed := make(chan error)
		go func() { closed <- s.Close() }()
		require.ErrorIs(t, inTime(read), io.EOF)
		require.NoError(t, inTime(closed))
	}
}

// TestCloseAgain verifies what the methods of a closed session return.
func TestCloseAgain(t *testing.T) {
	s := attachable(t, "tp:sys_enter(id == 1000000)")
	n, err := s.Attach()
	require.NoError(t, err)
	require.Equal(t, 1, n)
	before := s.places()
	_, err = s.Attach()
	require.EqualError(t, err, "attach a session: it is attached already: load the unit once more")
	require.Equal(t, before, s.places())
	for range 2 {
		require.NoError(t, s.Close())
		require.NoError(t, s.Stop())
		require.NoError(t, s.Wake())
		require.NoError(t, s.Discard())
		require.ErrorIs(t, s.Read(new(Event)), io.EOF)
		require.ErrorIs(t, s.Again(0), io.EOF)
		n, err := s.Attach()
		require.Zero(t, n)
		require.ErrorIs(t, err, ErrStopped)
	}
}

// TestCloseWhileAttaching verifies that nothing is attached after Close, and that it is no
// fault of what was to be attached.
func TestCloseWhileAttaching(t *testing.T) {
	s := attachable(t, "tp:writeback_*()")
	var steps []int
	s.Progress = func(done, total int) {
		if steps = append(steps, done); done == 1 {
			s.Progress = nil
			require.NoError(t, s.Close())
		}
	}
	n, err := s.Attach()
	require.Zero(t, n)
	require.ErrorIs(t, err, ErrStopped)
	require.Equal(t, []int{0, 1}, steps)
	require.Zero(t, s.places())
}

// TestWithoutParts verifies that a session whose unit was compiled without something says so.
func TestWithoutParts(t *testing.T) {
	s := attachable(t, "tp:sys_enter(id == 1000000)")
	require.EqualError(t, s.TraceIn(os.Stdin), "the unit was compiled without Options.Cgroup")
	_, err := s.Deserted()
	require.EqualError(t, err, "the unit was compiled without Options.Tree")
	for _, ev := range []*Event{{}, {EventType: s.unit.Events[0]}} {
		_, err = s.WatchObject(ev)
		require.EqualError(t, err, "watch an object: the event has found none")
	}
	_, err = Load(&compiler.Unit{Events: s.unit.Events}, s.kernel)
	require.EqualError(t, err, "load a unit: it has no programs, as it is that of a recording")
}
