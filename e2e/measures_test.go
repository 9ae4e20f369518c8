//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/codegen"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
	"github.com/ksnoop/ksnoop/e2e/traffic"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A measured is a spec with the measure for its calls.
type measured struct {
	spec string
	what compiler.Measure
}

// testMeasures checks that the counts of calls are exact, though records may be
// lost.
func testMeasures(t *testing.T, k *kernel) {
	t.Run("flood", func(t *testing.T) { measureFlood(t, k) })
	for _, kind := range k.kinds(t) {
		t.Run("values/"+string(kind), func(t *testing.T) { measureValues(t, k, kind) })
		t.Run("changes/"+string(kind), func(t *testing.T) { measureChanges(t, k, kind) })
		t.Run("durations/"+string(kind), func(t *testing.T) { measureDurations(t, k, kind) })
		t.Run("chain/"+string(kind), func(t *testing.T) { measureChain(t, k, kind) })
		t.Run("under way/"+string(kind), func(t *testing.T) { measureUnderWay(t, k, kind) })
		t.Run("held/"+string(kind), func(t *testing.T) { measureHeld(t, k, kind) })
	}
	t.Run("glob", func(t *testing.T) { measureGlob(t, k) })
	t.Run("tracepoint", func(t *testing.T) { measureTracepoint(t, k) })
	t.Run("module", measureModule)
	t.Run("first taken", func(t *testing.T) { measureFirstTaken(t, k) })
	t.Run("misses", func(t *testing.T) { measureMisses(t, k) })
}

// measure traces specs, and lines of kprobe_events, with their measures.
func (k *kernel) measure(t *testing.T, w resolve.Wishes, opts compiler.Options, specs ...measured) *tracer {
	session := k.loadMeasured(t, w, opts, specs...)
	n, err := session.Attach()
	var refused *runtime.AttachError
	if !errors.As(err, &refused) || !refused.Probe.OfGlob {
		require.NoError(t, err)
	}
	require.NotZero(t, n)
	return &tracer{session}
}

// loadMeasured loads the programs of specs, and lines of kprobe_events, with their measures.
func (k *kernel) loadMeasured(t *testing.T, w resolve.Wishes, opts compiler.Options, specs ...measured) *runtime.Session {
	w.Measures = map[*spec.Trace]compiler.Measure{}
	var traces []*spec.Trace
	for _, s := range specs {
		trace, err := kprobe.ParseAny(s.spec)
		require.NoError(t, err)
		w.Measures[trace] = s.what
		traces = append(traces, trace)
	}
	target := k.target()
	plan, err := resolve.All(traces, target, w)
	require.NoError(t, err)
	if opts.RingBytes == 0 {
		opts.RingBytes = 4096
	}
	unit, err := codegen.Compile(plan.Probes, opts)
	require.NoError(t, err)
	return k.loadUnit(t, unit)
}

// measureHeld verifies that what is held counts no call before it begins, with all programs at
// one moment, and all calls from then on.
func measureHeld(t *testing.T, k *kernel, kind compiler.Kind) {
	session := k.loadMeasured(t, resolve.Wishes{Attach: kind}, compiler.Options{},
		measured{"generic_file_llseek_size(offset > 1)", compiler.Calls},
		measured{"generic_file_llseek_size(offset > 1, return > 1)", compiler.Calls},
		measured{"generic_file_llseek_size(offset)", compiler.Values})
	session.Hold()
	_, err := session.Attach()
	require.NoError(t, err)
	seek := func(n int) { require.NoError(t, seekOn(n, func(int) int64 { return 2 })) }
	seek(5)
	require.NoError(t, session.Begin())
	seek(7)
	require.NoError(t, session.Begin(), "again, it changes nothing")
	for _, m := range (&tracer{session}).measured(t) {
		require.Equal(t, uint64(7), m.Called(), m.Probe)
		require.Equal(t, uint64(7), m.Matched, m.Probe)
		require.Zero(t, m.NoRoom+m.Unreadable)
	}
}

// measured stops the session and returns what it has measured.
func (tr *tracer) measured(t *testing.T) []runtime.Measured {
	require.NoError(t, tr.Stop())
	all, err := tr.Measured()
	require.NoError(t, err)
	return all
}

// fixed removes from the results what differs from session to session: the event
// types and the first calls.
func fixed(all []runtime.Measured) []runtime.Measured {
	all = slices.Clone(all)
	for i := range all {
		all[i].EventType, all[i].First = nil, nil
	}
	return all
}

// measureFlood makes many calls in several threads. Their counts do not depend
// on the ring buffer, which is full for most records.
func measureFlood(t *testing.T, k *kernel) {
	const users = 4
	calls := floodCalls()
	specs := []measured{
		{"generic_file_llseek_size(offset > 1)", compiler.Calls},
		{"generic_file_llseek_size(return > 2)", compiler.Calls},
		{"generic_file_llseek_size(offset > 1, return > 2)", compiler.Calls},
		{"generic_file_llseek_size(offset)", compiler.Values},
		{"generic_file_llseek_size(offset)", compiler.NoMeasure},
	}
	small := k.measure(t, resolve.Wishes{}, compiler.Options{}, specs...)
	large := k.measure(t, resolve.Wishes{}, compiler.Options{RingBytes: ringBytes}, specs...)
	threads(t, users, func(int) error { return seekOn(calls/users, func(i int) int64 { return int64(i % 4) }) })
	got := small.measured(t)
	require.Zero(t, small.missed(t)+large.missed(t), "the default kind misses nothing here")
	require.Equal(t, fixed(got), fixed(large.measured(t)))
	for i, matched := range []int{calls / 2, calls / 4, calls / 4, calls} {
		require.Equal(t, uint64(matched), got[i].Matched, specs[i].spec)
		require.Equal(t, uint64(calls), got[i].Called(), specs[i].spec)
	}
	require.Equal(t, uint64(calls), got[3].Samples())
	require.Equal(t, runtime.NewInt(int64(calls/4*(0+1+2+3))), got[3].Sum)
	lost := small.counters(t).Lost
	require.Greater(t, lost, uint64(calls/2), "the ring buffer is to be too small")
	t.Logf("%d of %d records lost, and no call", lost, calls)
}

// seekOn makes calls of generic_file_llseek_size, which no other process does
// here, with one file. They return the offset or, if it is negative, -EINVAL.
func seekOn(n int, offset func(i int) int64) error {
	fd, err := unix.MemfdCreate("seek", 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for i := range n {
		at := offset(i)
		if got, err := unix.Seek(fd, at, unix.SEEK_SET); err == nil && got != at || err != nil && (err != unix.EINVAL || at >= 0) {
			return fmt.Errorf("seek to %d: %d, %w", at, got, err)
		}
	}
	return nil
}

// measureValues checks sums, extremes and histograms of signed numbers on both
// sides. It also checks that counted and missed calls add up to all calls.
func measureValues(t *testing.T, k *kernel, kind compiler.Kind) {
	const calls = 20_000
	offset := func(i int) int64 { return (int64(i*7919)%2001 - 1000) << (i % 40) }
	result := func(i int) int64 {
		if offset(i) < 0 {
			return -int64(unix.EINVAL)
		}
		return offset(i)
	}
	want := []runtime.Measured{expect(calls, offset), expect(calls, result), expect(calls, offset)}
	specs := []measured{
		{"generic_file_llseek_size(offset)", compiler.Values},
		{"generic_file_llseek_size(return)", compiler.Values},
		{"generic_file_llseek_size(offset) if return >= 0 || return < 0", compiler.Values}, // the entry's value is kept until the return
	}
	if kind == compiler.Fentry && k.target().Features.Preemptible {
		specs = specs[:2]
	}
	tr := k.measure(t, resolve.Wishes{Attach: kind}, compiler.Options{}, specs...)
	require.NoError(t, seekOn(calls, offset))
	missed := k.missedBy(t, kind, tr)
	for i, m := range tr.measured(t) {
		require.LessOrEqual(t, calls-m.Called(), missed, specs[i].spec)
		require.Equal(t, m.Matched, m.Samples())
		if missed > 0 {
			continue
		}
		require.Equal(t, want[i].Counters, m.Counters, specs[i].spec)
		require.True(t, *want[i].Histogram == *m.Histogram, specs[i].spec)
		require.True(t, *want[i].Negative == *m.Negative, specs[i].spec)
		require.Equal(t, []runtime.Int{want[i].Sum, *want[i].Min, *want[i].Max}, []runtime.Int{m.Sum, *m.Min, *m.Max}, specs[i].spec)
		require.True(t, m.First.Read)
	}
}

// expect returns the expected measurement of the given numbers.
func expect(calls int, number func(i int) int64) runtime.Measured {
	m := runtime.Measured{Histogram: new(compiler.Histogram), Negative: new(compiler.Histogram)}
	least, most := number(0), number(0)
	for i := range calls {
		v := number(i)
		m.Sum = m.Sum.Add(runtime.NewInt(v))
		least, most = min(least, v), max(most, v)
		if v < 0 {
			m.Negative.Add(uint64(-v))
		} else {
			m.Histogram.Add(uint64(v))
		}
	}
	low, high := runtime.NewInt(least), runtime.NewInt(most)
	m.Min, m.Max = &low, &high
	m.Matched = uint64(calls)
	return m
}

// measureChanges makes calls that change a member, calls that do not, and calls
// whose member cannot be read.
func measureChanges(t *testing.T, k *kernel, kind compiler.Kind) {
	if kind == compiler.Fentry && k.target().Features.Preemptible {
		return // refused, as is every spec that joins both sides
	}
	const calls = 8000
	specs := []measured{
		{"generic_file_llseek_size(file->f_pos)", compiler.Changes},
		{"generic_file_llseek_size(file->f_flags)", compiler.Changes},
		{"generic_file_llseek_size(file->f_path)", compiler.Changes}, // a structure
		{"generic_file_llseek_size(file->f_pos) if return == 3", compiler.Changes},
		{"vfs_read(*pos) if count == 77", compiler.Changes},
	}
	tr := k.measure(t, resolve.Wishes{Attach: kind}, compiler.Options{}, specs...)
	require.NoError(t, seekOn(calls, func(i int) int64 { return int64(i / 2 % 4) }))
	read77(t)
	missed := tr.missed(t)
	want := [][3]uint64{
		{calls/2 - 1, calls/2 + 1, 0}, // the first call does not move the position
		{0, calls, 0},
		{0, calls, 0},
		{calls / 8, calls / 8, 0},
		{1, 1, 1}, // a file, a device, a pipe
	}
	for i, m := range tr.measured(t) {
		require.Equal(t, m.Matched, m.Changed+m.Unchanged+m.Faulted)
		if missed == 0 {
			require.Equal(t, want[i], [3]uint64{m.Changed, m.Unchanged, m.Faulted}, specs[i].spec)
		}
	}
}

// read77 reads 77 bytes of a file, of a device and of a pipe, which has no
// position.
func read77(t *testing.T) {
	var pipe [2]int
	require.NoError(t, unix.Pipe2(pipe[:], 0))
	_, err := unix.Write(pipe[1], []byte("text"))
	require.NoError(t, err)
	for _, path := range []string{"/init", "/dev/zero"} {
		fd, err := unix.Open(path, unix.O_RDONLY, 0)
		require.NoError(t, err)
		defer unix.Close(fd)
		n, err := unix.Read(fd, make([]byte, 77))
		require.NoError(t, err)
		require.Equal(t, 77, n)
	}
	_, err = unix.Read(pipe[0], make([]byte, 77))
	require.NoError(t, err)
	unix.Close(pipe[0])
	unix.Close(pipe[1])
}

// missedBy returns how many calls a tracer missed. Only trampolines may miss any, on a
// preemptible kernel, where a task that is preempted in one makes others miss theirs.
func (k *kernel) missedBy(t *testing.T, kind compiler.Kind, tr *tracer) uint64 {
	missed := tr.missed(t)
	if !kind.Trampoline() || !k.target().Features.Preemptible {
		require.Zero(t, missed)
	}
	return missed
}

// measureDurations checks that a sleep takes at least the requested time in the
// kernel, and at most the time that the caller measures.
func measureDurations(t *testing.T, k *kernel, kind compiler.Kind) {
	if kind == compiler.Fentry && k.target().Features.Preemptible {
		return
	}
	const sleeps = 40
	sleeper := newCaller(t)
	tr := k.measure(t, resolve.Wishes{Attach: kind}, compiler.Options{TID: sleeper.tid}, measured{"hrtimer_nanosleep", compiler.Durations})
	var asked, seen []uint64
	sleeper.do(func() {
		for i := range sleeps {
			ns := uint64(i*i%sleeps+1) * 100_000
			asked, seen = append(asked, ns), append(seen, sleep(t, ns))
		}
	})
	missed := k.missedBy(t, kind, tr)
	m := tr.measured(t)[0]
	require.Equal(t, m.Matched, m.Samples())
	require.LessOrEqual(t, sleeps-m.Matched, missed)
	if missed > 0 {
		return // it is unknown which calls are missing
	}
	requireBetween(t, total(asked), m.Sum, total(seen))
	requireBetween(t, runtime.NewUint(slices.Min(asked)), *m.Min, runtime.NewUint(slices.Min(seen)))
	requireBetween(t, runtime.NewUint(slices.Max(asked)), *m.Max, runtime.NewUint(slices.Max(seen)))
	var fastest, slowest compiler.Histogram
	for i := range asked {
		fastest.Add(asked[i])
		slowest.Add(seen[i])
	}
	for _, permille := range []uint64{0, 100, 500, 900, 950, 990, 999, 1000} {
		low, high, ok := m.Histogram.Quantile(permille)
		require.True(t, ok)
		from, _, _ := fastest.Quantile(permille)
		_, to, _ := slowest.Quantile(permille)
		require.True(t, from <= low && high <= to, "%d ‰: %d to %d, and not within %d to %d", permille, low, high, from, to)
	}
}

// sleep sleeps for ns nanoseconds and returns how long that took.
func sleep(t *testing.T, ns uint64) uint64 {
	start := instructions()
	length := unix.NsecToTimespec(int64(ns))
	if err := unix.Nanosleep(&length, nil); err != nil {
		t.Error(err)
	}
	return uint64(instructions() - start)
}

func total(all []uint64) (sum runtime.Int) {
	for _, v := range all {
		sum = sum.Add(runtime.NewUint(v))
	}
	return sum
}

func requireBetween(t *testing.T, low, v, high runtime.Int) {
	require.True(t, low.Cmp(v) <= 0 && v.Cmp(high) <= 0, "%v is not between %v and %v", v, low, high)
}

// measureChain counts how often a file is opened below two other opens.
func measureChain(t *testing.T, k *kernel, kind compiler.Kind) {
	f := k.target().Features
	if kind == compiler.Fentry && f.Preemptible || kind == compiler.KprobeMulti && !f.ReturnsUnlimited {
		return
	}
	open := openOverlay(t)
	chain := func(last string) *tracer {
		return k.measure(t, resolve.Wishes{Attach: kind, Chain: true}, compiler.Options{},
			measured{"do_dentry_open", compiler.Calls}, measured{"do_dentry_open", compiler.Calls}, measured{last, compiler.Calls})
	}
	entries, returns, none := chain("do_dentry_open"), chain("do_dentry_open(return == 0)"), chain("do_dentry_open(return > 0)")
	open()
	for tr, matched := range map[*tracer]uint64{entries: uint64(overlayOpens()), returns: uint64(overlayOpens()), none: 0} {
		m := tr.measured(t)[0]
		missed := tr.missed(t) // the kernel follows few calls at once
		require.LessOrEqual(t, m.Matched, matched)
		if missed > 0 {
			require.GreaterOrEqual(t, m.Matched+missed, matched)
			continue
		}
		require.Equal(t, matched, m.Matched)
		require.GreaterOrEqual(t, m.Called(), uint64(3*overlayOpens())) // other processes open files as well
		require.Zero(t, m.NoRoom+m.Unpaired+m.Unreadable)
	}
}

// measureUnderWay checks that a call does not count if it began before the
// probe was attached, or if it has not returned when the session stops.
func measureUnderWay(t *testing.T, k *kernel, kind compiler.Kind) {
	if kind == compiler.Fentry && k.target().Features.Preemptible {
		return
	}
	var before, after blockedReader
	before.begin(t)
	tr := k.measure(t, resolve.Wishes{Attach: kind}, compiler.Options{},
		measured{"vfs_read(count) if count == 77", compiler.Durations}, measured{"vfs_read(count == 77, return == 1)", compiler.Calls},
		measured{"vfs_read(count) if count == 77", compiler.Calls})
	before.end(t)
	after.begin(t)
	if tr.missed(t) > 0 {
		after.end(t)
		return
	}
	all := tr.measured(t)
	after.end(t)
	for i, want := range []uint64{0, 0, 1} {
		require.Equal(t, want, all[i].Matched, i)
	}
	again, err := tr.Measured()
	require.NoError(t, err)
	require.Equal(t, fixed(all), fixed(again), "counting has ended")
}

// A blockedReader is a thread that waits in the kernel for a byte.
type blockedReader struct {
	pipe [2]int
	done chan error
}

func (r *blockedReader) begin(t *testing.T) {
	require.NoError(t, unix.Pipe2(r.pipe[:], 0))
	r.done = make(chan error)
	tid := make(chan int)
	go func() {
		traffic.LockThread()
		tid <- unix.Gettid()
		_, err := unix.Read(r.pipe[0], make([]byte, 77))
		r.done <- err
	}()
	require.NoError(t, traffic.AwaitRead(<-tid))
}

func (r *blockedReader) end(t *testing.T) {
	_, err := unix.Write(r.pipe[1], []byte{1})
	require.NoError(t, err)
	require.NoError(t, <-r.done)
	unix.Close(r.pipe[0])
	unix.Close(r.pipe[1])
}

// measureGlob checks that each function of a glob has its own count.
func measureGlob(t *testing.T, k *kernel) {
	const calls = 5000
	tr := k.measure(t, resolve.Wishes{}, compiler.Options{},
		measured{"*_lseek(offset)", compiler.Values}, measured{"vfs_*(file) if $comm == \"nobody\"", compiler.Calls})
	seek(t, calls)
	require.Zero(t, tr.missed(t))
	sums := map[string]uint64{}
	var all *runtime.Measured
	for _, m := range tr.measured(t) {
		if m.Probe.Measure == compiler.Values {
			sums[m.Probe.Func.Name], _ = m.Sum.Uint64()
			require.Equal(t, "*_lseek", m.Probe.Asked.Func.Name)
			if all == nil {
				all = &m
			} else {
				all.Merge(&m)
			}
		}
	}
	require.Greater(t, len(sums), 1, "%v", slices.Collect(maps.Keys(sums)))
	require.Equal(t, uint64(calls/4*6), sums["null_lseek"])
	require.GreaterOrEqual(t, all.Matched, uint64(calls))
	require.Equal(t, all.Matched, all.Samples())
}

// measureModule counts calls of a function of a module that are nested in other
// calls of it.
func measureModule(t *testing.T) {
	open := openOverlay(t)
	if _, err := os.Stat("/sys/kernel/btf/overlay"); errors.Is(err, os.ErrNotExist) {
		return // this kernel has no types of modules and refuses the specs
	}
	k := openKernel(t)
	tr := k.measure(t, resolve.Wishes{}, compiler.Options{},
		measured{"overlay:ovl_open(return == 0)", compiler.Calls}, measured{"overlay:ovl_open", compiler.Durations})
	open()
	require.Zero(t, tr.missed(t))
	for _, m := range tr.measured(t) {
		require.Equal(t, compiler.Counters{Matched: uint64(2 * overlayOpens())}, m.Counters)
	}
}

// measureTracepoint counts system calls. Where tasks are preempted inside
// programs, the kernel skips some runs and counts them as missed.
func measureTracepoint(t *testing.T, k *kernel) {
	tr := k.measure(t, resolve.Wishes{}, compiler.Options{},
		measured{fmt.Sprintf("tp:sys_enter($arg2 == %d)", unix.SYS_GETPGID), compiler.Calls}, measured{"tp:sys_enter($arg2)", compiler.Values})
	const calls = 3000
	callKernel(getpgid, calls)
	missed := tr.missed(t)
	if !k.target().Features.Preemptible {
		require.Zero(t, missed)
	}
	all := tr.measured(t)
	require.LessOrEqual(t, all[0].Matched, uint64(calls))
	require.GreaterOrEqual(t, all[0].Matched+missed, uint64(calls))
	require.Equal(t, uint64(unix.SYS_GETPGID), all[0].First.Value)
	require.GreaterOrEqual(t, all[1].Histogram[compiler.Bucket(unix.SYS_GETPGID)]+missed, uint64(calls))
	require.Equal(t, all[1].Matched, all[1].Samples())
}

// measureMisses checks that the calls that a kretprobe with room for one call
// misses are not counted, and that the kernel reports them.
func measureMisses(t *testing.T, k *kernel) {
	tr := k.measure(t, resolve.Wishes{Attach: compiler.Kprobe}, compiler.Options{}, measured{"r1 vfs_read n=$arg3:u64 if n == 77", compiler.Calls})
	var first, second blockedReader
	first.begin(t)
	second.begin(t)
	second.end(t)
	first.end(t)
	require.NotZero(t, tr.missed(t))
	m := tr.measured(t)[0]
	t.Logf("%d missed, %+v", tr.missed(t), m.Counters)
	require.Equal(t, uint64(1), m.Matched)
}

// measureFirstTaken checks that a CPU does not try to store its first call
// again if another CPU has stored one, whatever the kernel leaves in the upper
// half of the error.
func measureFirstTaken(t *testing.T, k *kernel) {
	before := bpfObjects(t).maps
	tr := k.measure(t, resolve.Wishes{}, compiler.Options{}, measured{"null_lseek(offset)", compiler.Calls})
	first := mapNamed(t, before, compiler.FirstMap)
	event, kept := uint32(0), make([]byte, first.ValueSize())
	require.NoError(t, first.Put(event, kept))
	seek(t, 1)
	require.NoError(t, first.Delete(event))
	seek(t, 4)
	require.ErrorIs(t, first.Lookup(event, kept), ebpf.ErrKeyNotExist)
	require.Equal(t, uint64(5), tr.measured(t)[0].Matched)
}

// mapNamed returns the map called name that did not exist before.
func mapNamed(t *testing.T, before ids, name string) *ebpf.Map {
	for id := range bpfObjects(t).maps.without(before) {
		m, err := ebpf.NewMapFromID(ebpf.MapID(id))
		require.NoError(t, err)
		t.Cleanup(func() { m.Close() })
		info, err := m.Info()
		require.NoError(t, err)
		if info.Name == name {
			return m
		}
	}
	require.Fail(t, "there is no new map", name)
	return nil
}
