//go:build linux

package e2e

import (
	"fmt"
	"os"
	goruntime "runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/runtime"
)

// testSpans checks that spans join the calls that belong together.
func testSpans(t *testing.T, k *kernel) {
	f := k.target().Features
	kinds := slices.DeleteFunc(k.kinds(t), func(kind compiler.Kind) bool {
		// These miss calls: where tasks are preempted, and where the kernel follows few returns.
		return kind == compiler.Fentry && f.Preemptible || (kind == compiler.KprobeMulti || kind == compiler.KprobeSession) && !f.ReturnsUnlimited
	})
	for _, attach := range kinds {
		t.Run("threads/"+string(attach), func(t *testing.T) { testSpanThreads(t, k, attach) })
		t.Run("counted/"+string(attach), func(t *testing.T) { testSpanCounted(t, k, attach) })
	}
	t.Run("offcpu", func(t *testing.T) { testSpanOffCPU(t, k) })
	t.Run("blocks", func(t *testing.T) { testSpanBlocks(t, k) })
	t.Run("timers", func(t *testing.T) { testSpanTimers(t, k) })
	t.Run("softirqs", func(t *testing.T) { testSpanSoftirqs(t, k) })
	t.Run("sweep", func(t *testing.T) { testSpanSweep(t, k) })
}

// spanCounts returns what was counted of the beginnings and of the ends of a span.
func (tr *tracer) spanCounts(t *testing.T) (begin, end runtime.Counts) {
	counts, err := tr.EventCounts()
	require.NoError(t, err)
	require.Len(t, counts, 2)
	return counts[0], counts[1]
}

// testSpanThreads checks spans of threads that read different numbers of bytes. What
// the beginning shows of a call must be what its return shows.
func testSpanThreads(t *testing.T, k *kernel, attach compiler.Kind) {
	const threads, least = 4, 5000
	calls := rounds(500, 20_000)
	zero, err := unix.Open("/dev/zero", unix.O_RDONLY, 0)
	require.NoError(t, err)
	defer unix.Close(zero)
	opts := compiler.Options{PID: uint32(os.Getpid()), CountCalls: true, RingBytes: ringBytes}
	tr := k.trace(t, attach, opts, fmt.Sprintf("vfs_read(count) if count >= %d && count < %d => vfs_read(return, $duration) on $tid", least, 2*least))
	var working sync.WaitGroup
	for i := range threads {
		c := newCaller(t)
		working.Go(func() {
			c.do(func() {
				buf := make([]byte, 2*least)
				for n := range calls {
					_, _ = unix.Read(zero, buf[:least+(n*threads+i)%least]) // the test compares what is traced
				}
			})
		})
	}
	working.Wait()
	events := 0
	tr.events(t, func(ev *runtime.Event) {
		events++
		require.Equal(t, ev.Values[0].Uint64(), ev.Values[1].Uint64())
		require.Equal(t, ev.TID, ev.Begin.TID)
		require.Greater(t, ev.Time, ev.Start)
		require.GreaterOrEqual(t, ev.Values[2].Uint64(), uint64(ev.Time-ev.Start)) // it is read after the time
	})
	begin, end := tr.spanCounts(t)
	require.Equal(t, compiler.Counters{Filtered: begin.Filtered, Matched: uint64(threads * calls)}, begin.Counters)
	require.Zero(t, tr.missed(t))
	require.Equal(t, threads*calls, events)
	require.Equal(t, uint64(events), end.Matched)
}

// testSpanTimers checks spans of timers, which tasks and interrupts start, and which
// expire in interrupts. Every beginning is ended, replaced or still open.
func testSpanTimers(t *testing.T, k *kernel) {
	sleeps := rounds(100, 5000)
	tr := k.trace(t, "", compiler.Options{CountCalls: true, RingBytes: ringBytes}, "tp:hrtimer_start($arg1:x) => tp:hrtimer_expire_entry($arg1:x) on $arg1")
	var working sync.WaitGroup
	for range 3 {
		c := newCaller(t)
		working.Go(func() {
			c.do(func() {
				for range sleeps {
					ts := unix.NsecToTimespec(10_000)
					_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil)
				}
			})
		})
	}
	working.Wait()
	events := uint64(0)
	ended := map[uint64]bool{} // the times of the beginnings by which ends were shown
	tr.events(t, func(ev *runtime.Event) {
		events++
		require.Equal(t, ev.Values[0].Uint64(), ev.Values[1].Uint64())
		at := uint64(ev.Start)<<8 ^ ev.Values[0].Uint64()
		require.False(t, ended[at], "a beginning was shown twice")
		ended[at] = true
	})
	begin, end := tr.spanCounts(t)
	require.GreaterOrEqual(t, events, uint64(3*sleeps)*9/10) // an interrupt may find a timer due before it is started
	require.Equal(t, events, end.Matched)
	require.Zero(t, begin.NoRoom)
	require.Equal(t, begin.Matched, events+begin.Replaced+begin.Open)
}

// testSpanSoftirqs compares spans of calls in interrupts, which are shown and counted, with
// the pairs of the events of both points. On one CPU these events are in the same order.
func testSpanSoftirqs(t *testing.T, k *kernel) {
	if goruntime.NumCPU() > 1 {
		return
	}
	for _, of := range [][3]string{
		{"tp:softirq_entry($arg1", "tp:softirq_exit($arg1", "($cpu << 8 | $arg1)"},
		{"tp:net_dev_queue($arg1:x", "tp:netif_receive_skb($arg1:x", "$arg1"},
	} {
		key := ", " + of[2] + ":x64"
		run := ping(t)
		tr := k.trace(t, "", compiler.Options{CountCalls: true, RingBytes: ringBytes},
			of[0]+key+")", of[1]+key+")", of[0]+key+") => "+of[1]+") on "+of[2], of[0]+", count()) => "+of[1]+") on "+of[2])
		from := time.Duration(clock(unix.CLOCK_MONOTONIC)) // the beginnings of spans are attached last
		run()
		open := map[uint64]time.Duration{}
		type pair struct {
			key        uint64
			begin, end time.Duration
		}
		var pairs, spans []pair
		all := uint64(0)
		tr.events(t, func(ev *runtime.Event) {
			key := ev.Values[1].Uint64()
			switch begin := open[key]; {
			case ev.Kind == compiler.SpanEvent:
				if all++; ev.Start >= from {
					spans = append(spans, pair{key, ev.Start, ev.Time})
				}
			case ev.Number == 0 && ev.Time >= from:
				open[key] = ev.Time
			case ev.Number == 1 && begin > 0:
				pairs = append(pairs, pair{key, begin, ev.Time})
				delete(open, key)
			}
		})
		missed := tr.missed(t)
		t.Logf("%s: %d spans, %d pairs, %d missed", of[0], len(spans), len(pairs), missed)
		if missed > 0 { // of a preemptible kernel
			continue
		}
		require.Len(t, spans, len(pairs))
		require.Greater(t, len(spans), pings()/4) // a softirq handles all packets that wait
		for i, s := range spans {
			require.Equal(t, pairs[i].key, s.key)
			require.Greater(t, s.begin, pairs[i].begin, "programs run in the order of the specs")
			require.Less(t, s.begin, pairs[i].end)
			require.Greater(t, s.end, pairs[i].end)
		}
		counted := uint64(0)
		for _, row := range tr.tables(t)[0].Rows {
			counted += row.Calls
		}
		require.LessOrEqual(t, uint64(len(spans)), counted)
		require.LessOrEqual(t, counted, all, "its beginning was attached last")
	}
}

// testSpanSweep checks that the kernel accepts spans between functions with any
// prototypes, and between tracepoints.
func testSpanSweep(t *testing.T, k *kernel) {
	functions := sample(k.functions(t), rounds(30, 400))
	accepted := 0
	for pair := range slices.Chunk(functions, 2) {
		if len(pair) < 2 {
			break
		}
		text := fmt.Sprintf("%s => %s($duration > 1us, $comm) on $tid", pair[0], pair[1])
		plan, err := k.tryResolve(t, resolve.Wishes{}, text)
		if err != nil {
			continue // the sweep of functions looks at the reasons
		}
		accepted++
		require.NoError(t, k.load(plan.Probes...), text)
		text = fmt.Sprintf("%s(count()) => %s($comm, hist($duration)) if $duration > 1us on $tid", pair[0], pair[1])
		require.NoError(t, k.load(k.resolve(t, "", text).Probes...), text)
	}
	require.GreaterOrEqual(t, accepted, len(functions)/3)
	for _, text := range []string{
		"tp:sched_switch($arg2->comm, $kstack) => tp:sched_switch($duration) on $arg2->pid == $arg3->pid",
		"tp:sched_switch($arg2->comm, $kstack) => tp:sched_switch($kstack, hist($duration), max($arg3->prio)) on $arg2->pid == $arg3->pid",
		"tp:block_rq_issue($arg1) => tp:block_rq_complete($arg1->__data_len, $duration) on $arg1",
		"tp:softirq_raise($arg1) => tp:softirq_entry($arg1, $duration > 1ms) if $arg1 == 3 || $duration > 1s on ($cpu << 8 | $arg1)",
	} {
		if text[3:8] == "block" && k.refused(t, "", "tp:block_rq_complete($arg1->__data_len)") != nil {
			continue
		}
		plan := k.resolve(t, "", text)
		require.NoError(t, k.load(plan.Probes...), text)
	}
}
