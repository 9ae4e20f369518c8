//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/e2e/guest"
	"github.com/ksnoop/ksnoop/e2e/vm"
)

// TestPeers compares spans with tools of bpftrace that measure the same at the same
// time: the latency of block devices, and how long tasks wait for a CPU. Time is counted
// in instructions, so that a busy host does not come between the two.
func TestPeers(t *testing.T) {
	onlyWithFull(t)
	t.Parallel()
	requireMachine(t, vm.AMD64)
	_, err := vm.Install(t.Context(), bpftracePath, "bpftrace")
	require.NoError(t, err)
	shell, err := fetchBusybox()
	require.NoError(t, err)
	// bpftrace asks a shell where headers are, and crashes without one.
	m := vm.Machine{Memory: 2048, Icount: true, Files: []vm.File{{Path: "bin/sh", Source: shell}}}
	for _, file := range append(libraries(t, bpftracePath), bpftracePath) {
		m.Files = append(m.Files, vm.File{Path: file[1:], Source: file})
	}
	for tool, elsewhere := range elsewhere {
		text, err := os.ReadFile("/usr/sbin/" + filepath.Base(tool))
		require.NoError(t, err)
		script := filepath.Join(t.TempDir(), filepath.Base(tool))
		require.NoError(t, os.WriteFile(script, []byte(elsewhere.Replace(string(text))), 0o644))
		m.Files = append(m.Files, vm.File{Path: tool[1:], Source: script})
	}
	testOn(t, oneKernel, m, "^TestGuestPeers$")
}

// The paths of the tools in the guest.
const (
	biolatency = "/peers/biolatency.bt"
	runqlat    = "/peers/runqlat.bt"
)

// elsewhere moves the probes of biolatency to functions that the guest's kernel has not
// inlined. It makes runqlat measure what the spans do: only from wakeups of one program,
// and not also from when a task has to leave its CPU. So it needs no kernel headers.
var elsewhere = map[string]*strings.Replacer{
	biolatency: strings.NewReplacer(
		"kprobe:blk_account_io_start,", "", "kprobe:__blk_account_io_start", "kprobe:blk_mq_start_request",
		"kprobe:blk_account_io_done,", "", "kprobe:__blk_account_io_done", "kprobe:blk_mq_end_request",
	),
	runqlat: strings.NewReplacer(
		"#include <linux/sched.h>", "",
		"tracepoint:sched:sched_wakeup,\ntracepoint:sched:sched_wakeup_new", `tracepoint:sched:sched_wakeup /args->comm == "traffic"/`,
		"if (args->prev_state == TASK_RUNNING) {\n\t\t@qtime[args->prev_pid] = nsecs;\n\t}", "",
	),
}

// TestGuestPeers runs in the machine that TestPeers boots.
func TestGuestPeers(t *testing.T) {
	if !guest.Inside() {
		t.Skip("runs inside a virtual machine, see TestPeers")
	}
	t.Run("biolatency", peerOfBlocks)
	t.Run("runqlat", peerOfRunQueue)
}

// peerOfBlocks measures how long a block device takes for requests.
func peerOfBlocks(t *testing.T) {
	const reads, block = 2000, 4096
	disk := loopDisk(t, 64*block)
	memory, err := unix.Mmap(-1, 0, block, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	defer unix.Munmap(memory)
	const span = "blk_mq_start_request() => blk_mq_end_request($duration) on rq"
	ours, theirs := measureBoth(t, span, biolatency, func() {
		for i := range reads {
			_, err := unix.Pread(disk, memory, int64(i%64)*block)
			require.NoError(t, err)
		}
	})
	require.Len(t, ours, reads)
	requireSame(t, ours, theirs)
}

// peerOfRunQueue measures how long the threads of a process wait for a CPU once they
// have been woken. The process does not run before both tools measure.
func peerOfRunQueue(t *testing.T) {
	const naps = 1000
	dir := t.TempDir()
	wait := filepath.Join(dir, "wait")
	cmd := exec.Command("traffic", "sleep", "-n", strconv.Itoa(naps), "-pid", filepath.Join(dir, "pid"), "-wait", wait, "100us")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(dir, "pid")); return err == nil }, time.Minute, 20*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(unix.SIGSTOP))
	var status unix.WaitStatus
	_, err := unix.Wait4(cmd.Process.Pid, &status, unix.WUNTRACED, nil)
	require.NoError(t, err)
	require.True(t, status.Stopped())
	const span = `tp:sched_wakeup() if p->comm == "traffic" => tp:sched_switch($duration) on p->pid == next->pid`
	ours, theirs := measureBoth(t, span, runqlat, func() {
		require.NoError(t, os.WriteFile(wait, nil, 0o644))
		require.NoError(t, cmd.Process.Signal(unix.SIGCONT))
		require.NoError(t, cmd.Wait())
	})
	require.GreaterOrEqual(t, len(ours), naps)
	requireSame(t, ours, theirs)
}

// measureBoth measures the same by the tool and by spans. It returns the durations of
// the spans, and the tool's histogram. The spans are also counted in a table, which must
// agree with them.
func measureBoth(t *testing.T, span string, tool string, work func()) (ours []time.Duration, theirs []bucket) {
	peer := invocation{path: bpftracePath, args: []string{tool}}.start(t)
	require.NoError(t, peer.attached())
	args := []string{"trace", "-o", "json", "--pages", "4096", span, strings.Replace(span, "($duration)", "(count(), hist($duration))", 1)}
	us := invocation{path: "/bin/ksnoop", args: args, tells: true}.start(t)
	require.NoError(t, us.attached())
	work()
	said, err := us.stop()
	require.NoError(t, err)
	ours, table := readSpans(t, said)
	requireSame(t, ours, table)
	said, err = peer.stop()
	require.NoError(t, err)
	theirs = readHistogram(t, string(said))
	return ours, theirs
}

// bucket is a row of a histogram.
type bucket struct {
	below time.Duration
	count int
}

// readSpans returns the durations of all events, and the sum of all tables.
func readSpans(t *testing.T, said []byte) (durations []time.Duration, sum []bucket) {
	counts := map[time.Duration]int{}
	for line := range bytes.Lines(said) {
		var o struct {
			Type     string
			Duration time.Duration
			Rows     []struct {
				Hist []struct {
					To    time.Duration
					Count int
				}
			}
			Probes []struct{ Lost, Unreadable int }
		}
		require.NoError(t, json.Unmarshal(line, &o), "%s", line)
		if o.Type == "event" {
			durations = append(durations, o.Duration)
		}
		for _, r := range o.Rows {
			for _, b := range r.Hist {
				counts[b.To] += b.Count
			}
		}
		for _, p := range o.Probes {
			require.Zero(t, p.Lost+p.Unreadable, "%s", line)
		}
	}
	for below, n := range counts {
		sum = append(sum, bucket{below, n})
	}
	return durations, sum
}

// rowOf matches a row such as "[512, 1K)  7 |@@@ |" or "[1]  2 |@ |".
var rowOf = regexp.MustCompile(`(?m)^\[(\d+)(?:\]|[KM]?, (\d+)([KM]?)\)) +(\d+) \|`)

// readHistogram returns the histogram that bpftrace prints.
func readHistogram(t *testing.T, said string) (rows []bucket) {
	units := map[string]time.Duration{"": time.Microsecond, "K": 1024 * time.Microsecond, "M": 1024 * 1024 * time.Microsecond}
	for _, m := range rowOf.FindAllStringSubmatch(said, -1) {
		n, err := strconv.Atoi(m[4])
		require.NoError(t, err)
		below, one := strconv.Atoi(m[2])
		if one != nil {
			below, err = strconv.Atoi(m[1])
			require.NoError(t, err)
			below++
		}
		rows = append(rows, bucket{time.Duration(below) * units[m[3]], n})
	}
	require.NotEmpty(t, rows, said)
	return rows
}

// requireSame checks that a histogram is that of the durations: that it has as many, and
// as many below each of its bounds. The programs run one after the other at each point,
// so what they measure differs a little, and by more if an interrupt comes between.
func requireSame(t *testing.T, durations []time.Duration, histogram []bucket) {
	const apart = 50 * time.Microsecond
	interrupted := len(durations) / 50
	slices.Sort(durations)
	below := func(limit time.Duration) int {
		n, _ := slices.BinarySearch(durations, limit)
		return n
	}
	slices.SortFunc(histogram, func(a, b bucket) int { return int(a.below - b.below) })
	n := 0
	for _, b := range histogram {
		n += b.count
		require.GreaterOrEqual(t, n, below(b.below-apart)-interrupted, "below %v: %v", b.below, histogram)
		require.LessOrEqual(t, n, below(b.below+apart)+interrupted, "below %v: %v", b.below, histogram)
	}
	require.Len(t, durations, n, "%v", histogram)
}
