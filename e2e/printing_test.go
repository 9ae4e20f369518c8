//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// printed is a line of ksnoop print -o json.
type printed struct {
	CPU   *int
	Name  string
	Value any
	Fault string
}

// printNow returns what ksnoop print shows.
func printNow(t *testing.T, args ...string) (lines []printed) {
	cmd := exec.Command("/bin/ksnoop", append([]string{"print", "-o", "json", "--emit-zeroes"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	for line := range bytes.Lines(out) {
		var p printed
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		require.NoError(t, d.Decode(&p), string(line))
		lines = append(lines, p)
	}
	return lines
}

// numbersNow returns the numbers that ksnoop print shows.
func numbersNow(t *testing.T, args ...string) (numbers []uint64) {
	for _, p := range printNow(t, args...) {
		require.Empty(t, p.Fault, p.Name)
		n, err := strconv.ParseUint(fmt.Sprint(p.Value), 10, 64)
		require.NoError(t, err, p.Name)
		numbers = append(numbers, n)
	}
	return numbers
}

// testPrinting compares values that are read without a call with what /proc and
// system calls tell.
func testPrinting(t *testing.T, k *kernel) {
	t.Run("self", testPrintSelf)
	if k.target().Symbols.Lookup("panic_timeout") == nil {
		t.Log("this kernel lists no variables among its symbols")
		return
	}
	t.Run("names", testPrintNames)
	t.Run("load", testPrintLoad)
	t.Run("uptime", testPrintUptime)
	t.Run("cpus", testPrintCPUs)
	t.Run("changes", testPrintChanges)
	t.Run("module", func(t *testing.T) { testPrintModule(t, k) })
}

// testPrintModule reads variables of a module, by its types.
func testPrintModule(t *testing.T, k *kernel) {
	loopDisk(t, 1<<20)
	require.Equal(t, []uint64{1}, numbersNow(t, "(int)@max_loop"))
	if _, err := k.target().Module("loop"); err != nil {
		t.Logf("modules have no types: %v", err)
		return
	}
	numbers := numbersNow(t, "((struct loop_device)@loop_index_idr).lo_number:u, (u32)@loop_index_idr")
	require.Equal(t, numbers[0], numbers[1], "it is the first member")
	require.NotEmpty(t, printNow(t, "((struct loop_device *)0x10)->lo_number")[0].Fault)
}

// testPrintSelf reads what belongs to the parent of ksnoop, which is this process.
func testPrintSelf(t *testing.T) {
	const parent = "$task->real_parent->group_leader->"
	var limits []string
	for i := range 16 {
		var l unix.Rlimit
		require.NoError(t, unix.Getrlimit(i, &l))
		limits = append(limits, fmt.Sprint(l.Cur, " ", l.Max))
	}
	stat, err := os.ReadFile("/proc/self/stat")
	require.NoError(t, err)
	_, behind, _ := strings.Cut(string(stat), ") ")
	started, err := strconv.ParseUint(strings.Fields(behind)[19], 10, 64) // in hundredths of a second
	require.NoError(t, err)
	dir, err := os.Getwd()
	require.NoError(t, err)

	lines := printNow(t, parent+"pid", parent+"start_boottime", parent+"fs->pwd:path", parent+"signal->rlim[0..15]", parent+"signal->rlim[7..7]",
		"$ppid", "$pid", "*(u64 *)0x30", "*(u64 *)0xffffffff00000030", "(char *)0x7f0000000000", "((struct task_struct *)0)->comm")
	require.Equal(t, fmt.Sprint(os.Getpid()), fmt.Sprint(lines[0].Value))
	ns, err := strconv.ParseUint(fmt.Sprint(lines[1].Value), 10, 64)
	require.NoError(t, err)
	require.Equal(t, started, ns/10_000_000)
	require.Equal(t, dir, lines[2].Value)
	var got []string
	for _, l := range lines[3].Value.([]any) {
		limit := l.(map[string]any)
		got = append(got, fmt.Sprint(limit["rlim_cur"], " ", limit["rlim_max"]))
	}
	require.Equal(t, limits, got)
	require.Len(t, lines[4].Value, 1)
	require.Equal(t, lines[0].Value, lines[5].Value)
	require.NotEqual(t, lines[0].Value, lines[6].Value)
	for i, want := range []string{"0x30 is in the NULL page", "no readable memory at 0xffffffff00000030", "0x7f0000000000 is a user-space address", "NULL pointer"} {
		require.Equal(t, want, lines[7+i].Fault, lines[7+i].Name)
		require.Nil(t, lines[7+i].Value)
	}
}

// testPrintNames reads the names of the system, which uname(2) tells.
func testPrintNames(t *testing.T) {
	var u unix.Utsname
	require.NoError(t, unix.Uname(&u))
	lines := printNow(t, "((struct uts_namespace)@init_uts_ns).name")
	names := lines[0].Value.(map[string]any)
	for member, want := range map[string][65]byte{
		"sysname": u.Sysname, "nodename": u.Nodename, "release": u.Release, "version": u.Version, "machine": u.Machine,
	} {
		require.Equal(t, unix.ByteSliceToString(want[:]), names[member], member)
	}
}

// testPrintLoad reads the averages of the load. They change every 5 seconds: what was
// read between two equal states of /proc/loadavg must be what these show.
func testPrintLoad(t *testing.T) {
	averages := func() string {
		text, err := os.ReadFile("/proc/loadavg")
		require.NoError(t, err)
		return strings.Join(strings.Fields(string(text))[:3], " ")
	}
	for {
		before := averages()
		lines := printNow(t, "(unsigned long[3])@avenrun")
		if averages() != before {
			continue
		}
		var got []string
		for _, n := range lines[0].Value.([]any) {
			fixed, err := strconv.ParseUint(fmt.Sprint(n), 10, 64)
			require.NoError(t, err)
			fixed += 2048 / 200 // as fs/proc/loadavg.c rounds
			got = append(got, fmt.Sprintf("%d.%02d", fixed>>11, fixed&2047*100>>11))
		}
		require.Equal(t, before, strings.Join(got, " "))
		return
	}
}

// testPrintUptime reads the number of clock ticks, which begins 5 minutes before it
// overflows 32 bits. Debian's kernels have 250 ticks in a second.
func testPrintUptime(t *testing.T) {
	uptime := func() float64 {
		text, err := os.ReadFile("/proc/uptime")
		require.NoError(t, err)
		seconds, err := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
		require.NoError(t, err)
		return seconds
	}
	before := uptime()
	ticks := numbersNow(t, "(u64)@jiffies_64")[0]
	first := int32(-300 * 250)
	seconds := float64(ticks-uint64(uint32(first))) / 250
	require.InDelta(t, (before+uptime())/2, seconds, 5+uptime()-before)
}

// testPrintCPUs reads the run queues, one of each CPU, while three threads are busy on
// the first one.
func testPrintCPUs(t *testing.T) {
	const rq = "((struct rq)@runqueues)."
	var done atomic.Bool
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(8))
	defer done.Store(true)
	begun := make(chan bool)
	for range 3 {
		go func() {
			goruntime.LockOSThread() // and end the thread with its affinity
			var first unix.CPUSet
			first.Set(0)
			begun <- unix.SchedSetaffinity(0, &first) == nil
			for !done.Load() {
				unix.Getppid() // not interrupted by the collector, which stops threads otherwise
			}
		}()
	}
	for range 3 {
		require.True(t, <-begun)
	}
	online := onlineCPUs(t)
	lines := printNow(t, rq+"cpu, "+rq+"nr_running, $pid")
	done.Store(true) // what follows is faster without them
	var cpus []int
	for _, p := range lines {
		n, err := strconv.Atoi(fmt.Sprint(p.Value))
		require.NoError(t, err)
		switch p.Name {
		case rq + "cpu":
			require.Equal(t, n, *p.CPU)
			cpus = append(cpus, n)
		case rq + "nr_running":
			require.True(t, n >= 3 || *p.CPU > 0, "%d threads run", n)
		default:
			require.Nil(t, p.CPU, "the process is the same for all CPUs")
		}
	}
	require.Equal(t, online, cpus)
	require.Len(t, lines, 2*len(online)+1)
	last := printNow(t, "--cpu", fmt.Sprint(online[len(online)-1]), rq+"cpu")
	require.Len(t, last, 1)
	require.Equal(t, online[len(online)-1], *last[0].CPU)
	require.Equal(t, online, func() (cpus []int) {
		for _, p := range printNow(t, "--cpu", "all", rq+"cpu") {
			if slices.Contains(online, *p.CPU) {
				cpus = append(cpus, *p.CPU)
			}
		}
		return cpus
	}())
}

// onlineCPUs returns the CPUs that run: a line for each of them begins with cpuN.
func onlineCPUs(t *testing.T) (cpus []int) {
	text, err := os.ReadFile("/proc/stat")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		number, is := strings.CutPrefix(strings.Fields(line)[0], "cpu")
		if n, err := strconv.Atoi(number); is && err == nil {
			cpus = append(cpus, n)
		}
	}
	return cpus
}

// testPrintChanges reads a variable that is set meanwhile.
func testPrintChanges(t *testing.T) {
	const sysctl = "/proc/sys/kernel/panic"
	was, err := os.ReadFile(sysctl)
	require.NoError(t, err)
	defer os.WriteFile(sysctl, was, 0)
	set := func(n int) { require.NoError(t, os.WriteFile(sysctl, []byte(strconv.Itoa(n)), 0)) }
	set(-5)
	cmd := exec.Command("/bin/ksnoop", "print", "--every", "5ms", "(int)@panic_timeout")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewReader(out)
	expect := func(want string) {
		t.Helper()
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.Regexp(t, want, line)
	}
	expect(`^\(int\)@panic_timeout = \(int\)-5\n$`)
	before := -5
	for _, n := range []int{37, 2000000, 0} {
		set(n)
		expect(fmt.Sprintf(`^ *\d+ \(int\)@panic_timeout = %d -> %d\n$`, before, n))
		before = n
	}
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.NoError(t, cmd.Wait())
}
