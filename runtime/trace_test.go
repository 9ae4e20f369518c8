package runtime

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// requireTracing skips the test if this user may not trace, or the kernel has no
// types.
func requireTracing(t *testing.T) {
	requireTypes(t)
	if why := ReadPrivileges().Refusal(); why != "" {
		t.Skip(why)
	}
}

// calls returns a function that makes n system calls that nothing else in this
// process makes.
func calls(n int) func(*Session) error {
	return func(*Session) error {
		for range n {
			unix.Getpriority(unix.PRIO_PROCESS, 0)
		}
		return nil
	}
}

// TestTrace traces tracepoints on the kernel that runs the tests.
func TestTrace(t *testing.T) {
	requireTracing(t)
	specs := []string{"tp:sys_enter(id == 140, id)"}
	const asked = 140 // getpriority on x86-64
	if compiler.AMD64 != native(t) {
		specs = []string{"tp:sys_enter(id == 141, id)"}
	}
	o := Options{Programs: compiler.Options{PID: uint32(os.Getpid())}, TraceSelf: true, Attached: calls(10)}
	seen := 0
	show := func(ev *Event) error {
		require.Equal(t, "id", ev.Values[0].Name)
		require.Contains(t, []uint64{asked, asked + 1}, ev.Values[0].Uint64())
		require.Equal(t, int64(ev.Values[0].Uint64()), ev.Values[0].Int64())
		require.Equal(t, "long int", ev.Values[0].DataType().TypeName())
		if seen++; seen == 7 {
			return ErrEnough
		}
		return nil
	}
	result, err := Trace(t.Context(), specs, o, show)
	require.NoError(t, err)
	require.Equal(t, 7, seen)
	require.Empty(t, result.Untraced)
	require.Len(t, result.Plan.Probes, 1)
	require.Equal(t, uint64(7), result.Counts.Events[0].Delivered)
	require.Equal(t, uint64(3), result.Counts.Events[0].Unread, "those that nobody wanted to see")
	require.Zero(t, result.Counts.Lost())

	broken := errors.New("broken")
	result, err = Trace(t.Context(), specs, o, func(*Event) error { return broken })
	require.ErrorIs(t, err, broken)
	require.Equal(t, uint64(1), result.Counts.Events[0].Delivered)

	o.Attached = func(*Session) error { return broken }
	_, err = Trace(t.Context(), specs, o, show)
	require.ErrorIs(t, err, broken)

	ctx, cancel := context.WithCancel(t.Context())
	o.Attached = func(s *Session) error {
		err := calls(3)(s)
		cancel()
		return err
	}
	seen = 0
	_, err = Trace(ctx, specs, o, show)
	require.NoError(t, err)
	require.Equal(t, 3, seen, "what came before the end is shown")
}

func native(t *testing.T) *compiler.Arch {
	arch, err := compiler.NativeArch()
	require.NoError(t, err)
	return arch
}

// TestTraceCancelled verifies that nothing is traced for a context that is done, and that
// nobody is told that it were.
func TestTraceCancelled(t *testing.T) {
	requireTracing(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := Options{Attached: func(*Session) error { panic("attached") }}
	for range 3 {
		result, err := Trace(ctx, []string{"tp:sys_enter(id)"}, o, func(*Event) error { panic("shown") })
		require.ErrorIs(t, err, ErrStopped)
		require.Nil(t, result)
	}

	// Done after Trace has looked, and without the help of another goroutine.
	traces, err := parseAll([]string{"tp:sys_enter(id)"})
	require.NoError(t, err)
	session, _ := loaded(t, traces...)
	result, err := session.trace(doneLater{t.Context()}, o, nil)
	require.ErrorIs(t, err, ErrStopped)
	require.Nil(t, result)
}

// doneLater is a context that is done, whose channel does not say so yet.
type doneLater struct{ context.Context }

func (doneLater) Err() error { return context.Canceled }

// TestTracePanics verifies that nothing stays attached or mapped when a function of the
// caller panics, and the caller goes on.
func TestTracePanics(t *testing.T) {
	requireTracing(t)
	specs := []string{"tp:sys_enter(id) if id == 140 || id == 141"}
	broken := func(*Session) error { panic("broken") }
	trace := func(attached func(*Session) error) {
		defer func() { require.Equal(t, "broken", recover()) }()
		o := Options{Programs: compiler.Options{PID: uint32(os.Getpid())}, TraceSelf: true, Attached: attached}
		_, err := Trace(t.Context(), specs, o, func(*Event) error { panic("broken") })
		require.FailNow(t, "no panic", "%v", err)
	}
	trace(broken) // what is opened once
	before := kept(t)
	for range 3 {
		trace(broken)
		trace(calls(2))
		require.Equal(t, before, kept(t))
	}
}

// kept returns how many descriptors of each kind of BPF object this process has, and how
// many mappings of maps.
func kept(t *testing.T) map[string]int {
	found := map[string]int{}
	descriptors, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, d := range descriptors {
		if to, err := os.Readlink("/proc/self/fd/" + d.Name()); err == nil && strings.HasPrefix(to, "anon_inode:") {
			found[to]++
		}
	}
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	found["mappings"] = strings.Count(string(maps), "bpf-map")
	return found
}

// TestTraceCounts verifies that events are counted if nobody wants to see them.
func TestTraceCounts(t *testing.T) {
	requireTracing(t)
	o := Options{Programs: compiler.Options{PID: uint32(os.Getpid())}, TraceSelf: true}
	ctx, cancel := context.WithCancel(t.Context())
	o.Attached = func(s *Session) error {
		err := calls(5)(s)
		cancel()
		return err
	}
	result, err := Trace(ctx, []string{"tp:sys_enter(id) if id == 140 || id == 141"}, o, nil)
	require.NoError(t, err)
	require.GreaterOrEqual(t, result.Counts.Events[0].Delivered, uint64(5))
}

// TestTraceTree verifies that the processes that this one starts are followed, whether it
// is traced itself or not.
func TestTraceTree(t *testing.T) {
	requireTracing(t)
	for _, self := range []bool{false, true} {
		seen := map[string]int{}
		o := Options{Tree: true, TraceSelf: self, Attached: func(s *Session) error {
			command := exec.Command("sh", "-c", "/bin/true; /bin/true; exit 0")
			if err := s.FollowChildren(command.Start); err != nil {
				return err
			}
			return errors.Join(command.Wait(), s.Stop())
		}}
		_, err := Trace(t.Context(), []string{"tp:sched_process_exec(p->comm:string)"}, o, func(ev *Event) error {
			seen[string(untilNUL(ev.Values[0].Data))]++
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, map[string]int{"sh": 1, "true": 2}, seen, "TraceSelf: %v", self)
	}
}

// TestTraceOverrides verifies that Trace itself decides about processes and cgroups, and
// takes no notice of what the options for programs say of them.
func TestTraceOverrides(t *testing.T) {
	requireTracing(t)
	o := Options{TraceSelf: true, Attached: calls(3)}
	o.Programs = compiler.Options{Self: uint32(os.Getpid()), Cgroup: true, Tree: &compiler.Tasks{}, PID: uint32(os.Getpid())}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	result, err := Trace(ctx, []string{"tp:sys_enter(id) if id == 140 || id == 141"}, o, func(*Event) error { return ErrEnough })
	require.NoError(t, err)
	require.Equal(t, uint64(1), result.Counts.Events[0].Delivered)
}

// TestTraceRefuses verifies that errors in a spec are returned before anything is
// loaded.
func TestTraceRefuses(t *testing.T) {
	requireTypes(t)
	_, err := Trace(t.Context(), nil, Options{}, nil)
	require.EqualError(t, err, "there is no spec to trace by")
	_, err = Trace(t.Context(), []string{"vfs_read(", "vfs_read)"}, Options{}, nil)
	require.Equal(t, 2, strings.Count(err.Error(), "^"), err)
	require.ErrorAs(t, err, new(*spec.Error))
}

// TestLibraryPage verifies that the examples of docs/library.md are those of this
// package.
func TestLibraryPage(t *testing.T) {
	page, err := os.ReadFile("../docs/library.md")
	require.NoError(t, err)
	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	fences := strings.Split(string(page), "```go\n")[1:]
	require.Len(t, fences, 2)
	for _, fence := range fences {
		code, _, ok := strings.Cut(fence, "```\n")
		require.True(t, ok)
		body := "\t" + strings.ReplaceAll(strings.TrimSuffix(code, "\n"), "\n", "\n\t")
		require.Contains(t, string(source), strings.ReplaceAll(body, "\n\t\n", "\n\n"))
	}
}
