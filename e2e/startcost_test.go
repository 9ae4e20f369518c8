//go:build linux

package e2e

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/codegen"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/e2e/guest"
	"github.com/ksnoop/ksnoop/e2e/vm"
	"github.com/ksnoop/ksnoop/runtime"
)

// TestStartCosts counts the instructions that ksnoop takes to start, its
// memory, and how often it wakes up when nothing happens, in machines in which
// a nanosecond is one instruction. On other machines the number of wake-ups
// depends on their speed: while any goroutine runs, Go's runtime checks it
// every 20 us. It runs with -full or -run, as does the comparison with costTable.
func TestStartCosts(t *testing.T) {
	onlyWithFull(t)
	t.Parallel()
	for _, line := range costKernels("6.1", oneKernel, "newest") {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			checkCosts(t, line, testOn(t, line, vm.Machine{Icount: true}, "^TestGuestStartCosts$"))
		})
	}
}

// A start is a command line that traces until it is interrupted.
type start struct {
	what  string
	specs []string
}

// The upper bounds for ksnoop in idleTime when nothing happens.
const (
	mostWakeups = 50
	mostWork    = 10e6 // instructions
)

// mostMemory bounds the peak of a start of a few functions or globs, in KB.
const mostMemory = 16_000

var starts = []start{
	{"1 function", []string{"vfs_read"}},
	{"25 functions at entry", many(" ($pid)")},
	{"25 functions, entry and return", many("")},
	{"a condition on the duration", []string{"vfs_read(file->f_flags, return) if $duration > 0"}},
	{"a path", []string{"vfs_open(path:path)"}},
	{"a line", []string{"p:opens do_sys_openat2 name=$arg2:ustring"}},
	{"a glob", []string{"vfs_rea*"}},
	{"a glob of tracepoints", []string{"tp:sched_*"}},
}

// many returns specs for 25 functions.
func many(list string) []string {
	functions := strings.Fields(`vfs_read vfs_write vfs_open vfs_fsync vfs_fsync_range vfs_getattr vfs_llseek vfs_mkdir
		vfs_rmdir vfs_unlink vfs_link vfs_symlink vfs_rename vfs_create vfs_mknod vfs_readlink vfs_truncate vfs_fallocate
		vfs_iter_read vfs_iter_write vfs_setxattr vfs_getxattr vfs_removexattr vfs_listxattr vfs_get_link`)
	for i := range functions {
		functions[i] += list
	}
	return functions
}

// TestGuestStartCosts runs in the machines that TestStartCosts boots.
func TestGuestStartCosts(t *testing.T) {
	if !guest.Inside() {
		t.Skip("runs inside a virtual machine, see TestStartCosts")
	}
	reportRelease(t)
	all, k := starts, openKernel(t)
	if k.target().Features.KprobeMulti { // elsewhere each takes 0.1 s to detach
		all = append(all, start{"thousands of functions", []string{`s*() if $comm == "nobody"`}},
			start{"500 functions, entry and return", k.plainFunctions(t)[:500]})
	}
	for i, s := range all {
		c := s.cheapest(t)
		if i < len(starts) && c.memory > mostMemory {
			t.Errorf("%s: more than %d KB", s.what, mostMemory)
		}
		t.Logf("%s: %.0f million instructions from exec until attached, %.0f with what is waited for; %.0f until ended; %d KB", s.what, c.process, c.attached, c.ended, c.memory)
		reportCost(processRow+s.what+", millions until attached", c.process)
		reportCost(processRow+s.what+endedRow, c.ended)
		reportCost(processRow+s.what+memoryRow, float64(c.memory))
	}
	if n := len(all) - 1; n >= len(starts) {
		k.logPhases(t, all[n].specs)
	}
	if k.target().Features.KprobeMulti {
		k.followEverywhere(t)
	}
	testIdle(t)
}

// mostFollowing bounds the instructions to attach to all functions that take a packet,
// in millions.
const mostFollowing = 100

// followEverywhere counts what it takes to follow packets through all functions. The
// kernel refuses links with functions that have no hook, which are among them. Attaching
// counts as what the cheapest of three times takes: each link waits for a grace period,
// whose length depends on when in a tick of 4 million instructions it begins.
func (k *kernel) followEverywhere(t *testing.T) {
	trace, err := spec.Parse("ip_send_skb(skb)")
	require.NoError(t, err)
	at := instructions()
	plan, err := resolve.Follow(trace, resolve.Following{}, k.target())
	require.NoError(t, err)
	unit, err := codegen.Compile(plan.Probes, compiler.Options{RingBytes: 1 << 16})
	require.NoError(t, err)
	compiled := instructions()
	n, loaded, attached := 0, 0.0, math.Inf(1)
	for range 3 {
		before := instructions()
		s, err := runtime.Load(unit, k.Kernel)
		require.NoError(t, err)
		middle := instructions()
		n, _ = s.Attach()
		loaded, attached = float64(middle-before)/1e6, min(attached, float64(instructions()-middle)/1e6)
		require.NoError(t, s.Close())
	}
	require.Greater(t, n, 1500)
	require.Less(t, n, len(plan.Probes), "the target does not know which functions have no hook")
	t.Logf("to follow packets through %d of %d functions: millions to resolve and compile %d, to load %.0f, to attach %d links %.0f",
		n, len(plan.Probes), (compiled-at)/1e6, loaded, len(unit.Attachments), attached)
	reportCost(processRow+"all functions that take a packet, millions to attach", attached)
	if attached > mostFollowing {
		t.Errorf("to follow packets takes more than %d million to attach", mostFollowing)
	}
}

// logPhases logs what each phase of a trace takes, in this process.
func (k *kernel) logPhases(t *testing.T, specs []string) {
	at := instructions()
	phase := func(what string) {
		now := instructions()
		t.Logf("%d functions: %s: %.0f million", len(specs), what, float64(now-at)/1e6)
		at = now
	}
	plan, err := k.tryResolve(t, resolve.Wishes{}, specs...)
	require.NoError(t, err)
	phase("resolve")
	unit, err := codegen.Compile(plan.Probes, compiler.Options{RingBytes: 1 << 16})
	require.NoError(t, err)
	phase(fmt.Sprintf("compile %d programs", len(unit.Collection.Programs)))
	s, err := runtime.Load(unit, k.Kernel)
	require.NoError(t, err)
	phase("load")
	_, err = s.Attach()
	require.NoError(t, err)
	phase(fmt.Sprintf("attach %d links", len(unit.Attachments)))
	require.NoError(t, s.Stop())
	phase("stop")
	require.NoError(t, s.Detach())
	phase("detach")
	require.NoError(t, s.Close())
	phase("close")
}

// testIdle takes the median of three times: in about one of thirty, a look takes up to
// fifty wake-ups more. Go's monitor wakes up when the timer is due, and then every 20
// microseconds until a thread has taken it; threads wait in whole milliseconds, so that may
// be a millisecond later.
func testIdle(t *testing.T) {
	var wakes, work []float64
	for range 3 {
		s := ours(&rejectedCases[0]).start(t)
		woken, worked := s.idle(t)
		t.Logf("idle: woken %.0f times in %v, %.0f instructions", woken, idleTime, worked)
		wakes, work = append(wakes, woken), append(work, worked)
	}
	slices.Sort(wakes)
	if wakes[1] > mostWakeups || slices.Max(work) > mostWork {
		t.Errorf("idle: more than %d times, or more than %.0f instructions", mostWakeups, mostWork)
	}
}

// A startCost holds the costs of a start, in millions of instructions.
type startCost struct {
	process, attached float64 // those of the process, and those of the machine, until all is attached
	ended             float64 // those of the machine from SIGINT until the process has ended
	memory            int     // the peak, in KB
}

// cheapest returns the least of each figure of four starts: the kernel does more the first
// time, and what Go's garbage collector and the kernel's grace periods take depends on
// when they begin.
func (s *start) cheapest(t *testing.T) startCost {
	least := s.run(t)
	for range 3 {
		c := s.run(t)
		least.process, least.attached = min(least.process, c.process), min(least.attached, c.attached)
		least.ended, least.memory = min(least.ended, c.ended), min(least.memory, c.memory)
	}
	return least
}

// run starts ksnoop and ends it once all probes are attached.
func (s *start) run(t *testing.T) (c startCost) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	cmd := exec.Command("/bin/ksnoop", append([]string{"trace", "--ready-fd", "3"}, s.specs...)...)
	cmd.ExtraFiles = []*os.File{w}
	var errs strings.Builder
	cmd.Stderr = &errs
	before := instructions()
	require.NoError(t, cmd.Start())
	w.Close()
	_, err = bufio.NewReader(r).ReadString('\n')
	after := instructions()
	require.NoError(t, err, errs.String())
	c.process, c.attached = float64(executed(t, cmd.Process.Pid))/1e6, float64(after-before)/1e6
	c.memory, err = strconv.Atoi(status(t, cmd.Process.Pid, "VmHWM:"))
	require.NoError(t, err)
	end := instructions()
	require.NoError(t, cmd.Process.Signal(unix.SIGINT))
	require.NoError(t, cmd.Wait())
	c.ended = float64(instructions()-end) / 1e6
	return c
}

// executed returns the time that the threads of a process have run, in
// nanoseconds.
func executed(t *testing.T, pid int) (sum int64) {
	names, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	require.NoError(t, err)
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		n, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		require.NoError(t, err)
		sum += n
	}
	return sum
}

// status returns a value of a process's status file.
func status(t *testing.T, pid int, key string) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), key)
	return strings.Fields(rest)[0]
}
