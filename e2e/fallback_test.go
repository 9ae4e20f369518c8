//go:build linux

package e2e

import (
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/runtime"
)

// testFallback checks that a function whose trampoline is full is traced by kprobe,
// beside others that keep their kind, unless fentry was asked for.
func testFallback(t *testing.T, k *kernel) {
	const read, caller = "vfs_read(count == 4321", "ksys_read(count == 4321, return)"
	if kind := k.resolve(t, "", caller).Probes[0].Attach.Entry; kind != compiler.Fentry {
		f := k.target().Features
		require.True(t, !f.Trampoline || f.Preemptible)
		t.Skip("functions are traced by " + kind)
	}
	defer fillTrampoline(t, "vfs_read")()
	for _, tc := range []struct {
		spec  string
		stack bool
	}{
		{read + ")", false},
		{read + ", return)", false},
		{read + ", return == 4321)", false}, // fexit has the arguments itself
		{read + ", file->f_mode, return == 4321)", false},
		{read + ", $duration > 0, return)", false},
		{read + ", return)", true},
	} {
		t.Run(tc.spec, func(t *testing.T) {
			r := k.traceReads(t, runtime.Options{Wishes: resolve.Wishes{Chain: tc.stack}}, caller, tc.spec)
			require.Equal(t, []string{"traced by kprobe: vfs_read, as the kernel has refused " + refusedSide(tc.spec) +
				": other programs have taken all the room for fentry and fexit there, which is for 38"}, r.Notes)
			require.Empty(t, r.Untraced)
			require.Equal(t, compiler.Fentry, r.Plan.Probes[0].Attach.Entry)
			require.Equal(t, compiler.Kprobe, r.Plan.Probes[1].Attach.Entry)
			for _, m := range r.Counts.Missed {
				require.Equal(t, m.Kind == compiler.Kprobe || m.Kind == compiler.Kretprobe, m.Probes[0] == r.Plan.Probes[1])
			}
			require.Zero(t, r.Counts.Lost(), "%+v", r.Counts)
		})
	}
	t.Run("watched", func(t *testing.T) { testFallbackWatched(t, k) })
	t.Run("asked for", func(t *testing.T) {
		r := k.traceReads(t, runtime.Options{Wishes: resolve.Wishes{Attach: compiler.Fentry}}, caller, read+")")
		require.Empty(t, r.Notes)
		require.Len(t, r.Untraced, 1)
		require.EqualError(t, r.Untraced[0], "attach fentry to vfs_read: other programs have taken all the room for fentry and fexit there, which is for 38")
		require.Len(t, r.Counts.Events, 2)
	})
}

// testFallbackWatched checks that objects are found and watched by what has been loaded
// again with kprobes.
func testFallbackWatched(t *testing.T, k *kernel) {
	tr, err := k.watch(t, fmt.Sprintf("vfs_read(file->f_pos) if count == 4321 && $pid == %d", os.Getpid()))
	require.NoError(t, err)
	require.Len(t, tr.Notes(), 1)
	require.Contains(t, tr.Notes()[0], "traced by kprobe: vfs_read, as the kernel has refused fentry")
	f, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer f.Close()
	_, err = f.Read(make([]byte, 4321))
	require.ErrorIs(t, err, io.EOF)
	var ev runtime.Event
	require.NoError(t, tr.Read(&ev))
	require.NotNil(t, ev.Probe.Find)
	changed, err := tr.WatchObject(&ev)
	require.NoError(t, err)
	require.Empty(t, changed)
	begun, live, err := tr.Objects()
	require.NoError(t, err)
	require.Equal(t, []int{1, 1}, []int{begun, len(live)})
	_, err = f.Seek(7, io.SeekStart)
	require.NoError(t, err)
	require.NoError(t, tr.Read(&ev))
	w := ev.Probe.Watch
	require.Zero(t, ev.ValueOf(w.Old).Uint64())
	if w.New != nil { // where the breakpoint is hit after the write
		require.EqualValues(t, 7, valueOf(&ev, w.New))
	}
}

// refusedSide returns the kind that is attached first.
func refusedSide(spec string) string {
	if spec == "vfs_read(count == 4321)" {
		return "fentry"
	}
	return "fexit"
}

// traceReads traces reads of one thread, by specs that show those of 4321 bytes.
func (k *kernel) traceReads(t *testing.T, o runtime.Options, specs ...string) *runtime.Result {
	const n = 20
	zero, err := unix.Open("/dev/zero", unix.O_RDONLY, 0)
	require.NoError(t, err)
	defer unix.Close(zero)
	caller := newCaller(t)
	o.Programs = compiler.Options{TID: caller.tid, CountCalls: true, RingBytes: ringBytes}
	o.TraceSelf = true
	o.Attached = func(s *runtime.Session) error {
		caller.do(func() {
			for range n {
				unix.Read(zero, make([]byte, 4321))
				unix.Read(zero, make([]byte, 1234))
			}
		})
		return s.Stop()
	}
	r, err := runtime.Trace(t.Context(), specs, o, func(*runtime.Event) error { return nil })
	require.NoError(t, err)
	for _, c := range r.Counts.Events {
		if len(r.Untraced) == 0 {
			require.Equal(t, []uint64{n, n}, []uint64{c.Matched, c.Delivered}, "%s", c.Probe.Trace.Text)
		}
	}
	return r
}

// fillTrampoline attaches as many programs to a function as its trampoline takes.
func fillTrampoline(t *testing.T, fn string) (empty func()) {
	const many = 41 // more than any kernel takes
	start := time.Now()
	programs := map[string]*ebpf.ProgramSpec{}
	for i := range many {
		programs[fmt.Sprint(i)] = emptyOn(fn, compiler.Fentry)[0].spec()
	}
	coll, err := ebpf.NewCollection(&ebpf.CollectionSpec{Programs: programs})
	require.NoError(t, err)
	defer coll.Close() // the links keep references
	t.Log("loaded in", time.Since(start))
	var links []link.Link
	for _, p := range coll.Programs {
		l, err := link.AttachTracing(link.TracingOptions{Program: p})
		if err != nil {
			require.ErrorIs(t, err, unix.E2BIG, "after %d programs", len(links))
			break
		}
		links = append(links, l)
	}
	t.Log(len(links), "attached in", time.Since(start))
	require.Less(t, len(links), many)
	return func() {
		for _, l := range links {
			require.NoError(t, l.Close())
		}
	}
}
