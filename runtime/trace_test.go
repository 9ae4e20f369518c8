package runtime

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

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
