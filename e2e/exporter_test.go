//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/e2e/guest"
	"github.com/ksnoop/ksnoop/e2e/script"
	"github.com/ksnoop/ksnoop/e2e/vm"
)

// exporterPath is the path of the exporter in the guest.
const exporterPath = "/bin/ksnoop-exporter"

// builtExporter builds the exporter, which is a module of its own.
var builtExporter = eachArch(func(a vm.Arch) (string, error) {
	if err := dependOnSources(); err != nil {
		return "", err
	}
	file := filepath.Join(scratch, "ksnoop-exporter-"+string(a))
	cmd := exec.Command("go", "build", "-buildvcs=false", "-tags", "urfave_cli_no_docs", "-ldflags=-s -w", "-o", file, ".")
	cmd.Dir = "../cmd/ksnoop-exporter"
	cmd.Env = buildFor(a)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", cmd, err, out)
	}
	return file, nil
})

// TestExporter runs the exporter in a guest: on oneKernel, with -full on 5.10 instead,
// where nobody can read counts without capabilities, and with -run on both and on the
// newest kernel, which is preemptible.
func TestExporter(t *testing.T) {
	t.Parallel()
	lines := []string{oneKernel, "5.10", "newest"}
	if !named() {
		lines = lines[:1]
		if *full {
			lines = []string{"5.10"}
		}
	}
	for _, line := range lines {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			requireMachine(t, vm.AMD64)
			m := vm.Machine{Files: []vm.File{{Path: exporterPath[1:], Source: built(t, builtExporter, vm.AMD64)}}}
			testOn(t, line, m, "^TestGuestExporter$")
		})
	}
}

// exporterFile counts the reads that the command traffic makes.
const exporterFile = `ksnoop-probes 1
suite reads
metric all    vfs_read() if count == 4321 && return > 0                                                       count
metric bytes  vfs_read(return) if count == 4321 && return > 0                                                 sum
metric by     vfs_read($comm, count, count(), hist($duration), max(return)) if count >= 4321 && count < 4400  table
metric sizes  vfs_read(count) if count == 4321                                                                histogram
metric in     -s ksys_read vfs_read(count == 4321)                                                            count
metric spans  vfs_read($comm) if count == 4321 => vfs_read(return, hist($duration)) on $tid                   table
metric tp     tp:sys_enter($comm, count()) if $comm == "traffic" && id == 0                                   table
metric absent no_such_function()                                                                              count
metric wrong  vfs_read(file->nonesuch)                                                                        sum
`

// TestGuestExporter runs in the machines that TestExporter boots.
func TestGuestExporter(t *testing.T) {
	if !guest.Inside() {
		t.Skip("runs inside a virtual machine, see TestExporter")
	}
	file := filepath.Join(t.TempDir(), "reads.probes")
	require.NoError(t, os.WriteFile(file, []byte(exporterFile), 0o644))
	before, err := script.Objects()
	require.NoError(t, err)

	e := startExporter(t, "--series", "3", file)
	for _, says := range []string{
		"7 of 9 metrics are counted, http://127.0.0.1:9536/metrics", "metric absent: there is no function no_such_function in this kernel",
		"metric wrong: ", "struct file has no member 'nonesuch'",
	} {
		require.Contains(t, e.log.String(), says)
	}
	requireNoCapabilities(t, e.cmd.Process.Pid)
	readTraffic(t, 1000, 4321)
	checkReads(t, e.scrape(), 1000)
	requireNoCapabilities(t, e.cmd.Process.Pid)

	// more keys than series: 4321, 4322 and 4323 have one, the others share one; meanwhile the
	// clock of the day is set
	setClock(t, time.Hour)
	defer setClock(t, -time.Hour)
	readTraffic(t, 30, 4322)
	readTraffic(t, 20, 4323)
	e.scrape()
	readTraffic(t, 5, 4324)
	readTraffic(t, 6, 4325)
	m := e.scrape()
	require.Equal(t, 30.0, m.value("ksnoop_reads_by_total", "comm=traffic", "count=4322"))
	require.Equal(t, 20.0, m.value("ksnoop_reads_by_total", "comm=traffic", "count=4323"))
	require.Equal(t, 11.0, m.value("ksnoop_reads_by_total", "comm=(other)", "count=(other)"))
	require.Equal(t, 11.0, m.value("ksnoop_reads_by_duration_seconds_count", "comm=(other)"))
	require.Equal(t, 3.0, m.value("ksnoop_probe_series", "metric=by"))

	// another file: what has not changed goes on
	changed := strings.Replace(exporterFile, "metric all ", "metric every ", 1)
	require.NoError(t, os.WriteFile(file, []byte(changed), 0o644))
	require.NoError(t, e.cmd.Process.Signal(unix.SIGHUP))
	e.await("the probe files are read again: 7 of 9 metrics are counted")
	require.NoError(t, os.WriteFile(file, []byte("ksnoop-probes 1\nmetric x vfs_read(\n"), 0o644))
	require.NoError(t, e.cmd.Process.Signal(unix.SIGHUP))
	e.await("what was counted before is still counted")
	readTraffic(t, 10, 4321)
	m = e.scrape()
	require.Equal(t, 10.0, m.value("ksnoop_reads_every_total"))
	require.Equal(t, 1010*4321.0, m.value("ksnoop_reads_bytes_total"))
	require.Equal(t, -1.0, m.value("ksnoop_reads_all_total"))
	require.Equal(t, 0.0, m.value("ksnoop_exporter_config_last_reload_successful"))

	// killed: the kernel keeps nothing, and counts begin again
	require.NoError(t, e.cmd.Process.Kill())
	require.Error(t, e.cmd.Wait())
	requireObjects(t, before)
	require.NoError(t, os.WriteFile(file, []byte(exporterFile), 0o644))
	e = startExporter(t, file)
	readTraffic(t, 50, 4321)
	checkReads(t, e.scrape(), 50)

	require.NoError(t, e.cmd.Process.Signal(unix.SIGTERM))
	require.NoError(t, e.cmd.Wait())
	requireObjects(t, before)
}

// setClock sets the clock of the day by so much.
func setClock(t *testing.T, by time.Duration) {
	now := unix.NsecToTimespec(time.Now().Add(by).UnixNano())
	require.NoError(t, unix.ClockSettime(unix.CLOCK_REALTIME, &now))
}

// checkReads compares what is served with n reads of 4321 bytes.
func checkReads(t *testing.T, m exported, n int) {
	require.Equal(t, float64(n), m.value("ksnoop_reads_all_total"))
	require.Equal(t, float64(n)*4321, m.value("ksnoop_reads_bytes_total"))
	require.Equal(t, float64(n), m.value("ksnoop_reads_in_total"))
	require.Equal(t, float64(n), m.value("ksnoop_reads_by_total", "comm=traffic", "count=4321"))
	require.Equal(t, 4321.0, m.value("ksnoop_reads_by_return_max", "comm=traffic", "count=4321"))
	// On preemptible kernels the programs of tracepoints miss calls, of any task.
	missed := m.value("ksnoop_probe_lost_calls_total", "metric=tp", "reason=missed")
	require.GreaterOrEqual(t, m.value("ksnoop_reads_tp_total", "comm=traffic")+missed, float64(n))
	for name, labels := range map[string][]string{
		"ksnoop_reads_by_duration_seconds": {"comm=traffic", "count=4321"},
		"ksnoop_reads_sizes":               nil,
		"ksnoop_reads_spans_seconds":       {"comm=traffic", "return=4321"},
	} {
		require.Equal(t, float64(n), m.value(name+"_count", labels...), name)
		require.Equal(t, float64(n), m.value(name+"_bucket", append(labels, "le=+Inf")...), name)
		require.Greater(t, m.value(name+"_sum", labels...), 0.0, name)
	}
	require.Equal(t, 0.0, m.value("ksnoop_reads_sizes_bucket", "le=4095"))
	require.Equal(t, float64(n), m.value("ksnoop_reads_sizes_bucket", "le=8191"))
	require.Equal(t, float64(n)*4321, m.value("ksnoop_reads_sizes_sum"))
	require.Equal(t, 1.0, m.value("ksnoop_probe_up", "metric=tp"))
	for _, name := range []string{"all", "bytes", "by", "sizes", "in", "spans"} {
		require.Equal(t, 1.0, m.value("ksnoop_probe_up", "metric="+name), name)
		require.Equal(t, 0.0, m.value("ksnoop_probe_lost_calls_total", "metric="+name, "reason=missed"), name)
		for _, reason := range []string{"no_room", "unreadable", "table_full", "unread"} {
			require.LessOrEqual(t, m.value("ksnoop_probe_lost_calls_total", "metric="+name, "reason="+reason), 0.0, name)
		}
	}
	for _, name := range []string{"absent", "wrong"} {
		require.Equal(t, 0.0, m.value("ksnoop_probe_up", "metric="+name))
	}
}

// readTraffic makes n reads of a size.
func readTraffic(t *testing.T, n, size int) {
	out, err := exec.Command("/bin/traffic", "read", "-n", fmt.Sprint(n), "-size", fmt.Sprint(size)).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// requireNoCapabilities checks that no thread of a process has capabilities in force,
// and that only CAP_BPF and CAP_PERFMON are permitted.
func requireNoCapabilities(t *testing.T, pid int) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	require.NoError(t, err)
	require.NotEmpty(t, tasks)
	want := fmt.Sprintf("\nCapPrm:\t%016x\nCapEff:\t%016x\n", 1<<unix.CAP_BPF|1<<unix.CAP_PERFMON, 0)
	for _, name := range tasks {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Contains(t, string(text), want)
	}
}

// requireObjects checks that the kernel has no objects but those in before.
func requireObjects(t *testing.T, before []string) {
	left, err := script.AwaitObjects(before)
	require.NoError(t, err)
	require.Empty(t, left)
}

// runningExporter is an exporter in the guest.
type runningExporter struct {
	t   *testing.T
	cmd *exec.Cmd
	log *safeBuffer
}

// safeBuffer is a buffer that several goroutines use.
type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *safeBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(text)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func startExporter(t *testing.T, args ...string) *runningExporter {
	e := &runningExporter{t: t, cmd: exec.Command(exporterPath, args...), log: &safeBuffer{}}
	e.cmd.Stderr = e.log
	require.NoError(t, e.cmd.Start())
	t.Cleanup(func() { e.cmd.Process.Kill() })
	e.await("/metrics\n")
	return e
}

// await waits until the exporter has said a text.
func (e *runningExporter) await(text string) {
	e.t.Helper()
	require.Eventually(e.t, func() bool { return strings.Contains(e.log.String(), text) }, 2*time.Minute, 20*time.Millisecond, "%s", e.log)
}

// scrape returns all metrics. It speaks HTTP by itself, as package net/http would make
// this program, which is in every guest, larger.
func (e *runningExporter) scrape() exported {
	conn, err := net.Dial("tcp", "127.0.0.1:9536")
	require.NoError(e.t, err)
	defer conn.Close()
	_, err = fmt.Fprint(conn, "GET /metrics HTTP/1.0\r\nAccept: text/plain\r\n\r\n")
	require.NoError(e.t, err)
	answer, err := io.ReadAll(conn)
	require.NoError(e.t, err)
	head, body, ok := bytes.Cut(answer, []byte("\r\n\r\n"))
	require.True(e.t, ok)
	require.Contains(e.t, string(head), " 200 OK", "%s", body)
	m := exported{}
	for line := range strings.Lines(string(body)) {
		line = strings.TrimSpace(line)
		if at := strings.LastIndexByte(line, ' '); line[0] != '#' {
			m[line[:at]], err = strconv.ParseFloat(line[at+1:], 64)
			require.NoError(e.t, err, line)
		}
	}
	return m
}

// exported maps the series of a scrape, written as a{b="c"}, to their values.
type exported map[string]float64

// value returns the value of the only series of a name with labels, written a=b. It
// returns -1 if there is none, and NaN if there are several.
func (m exported) value(name string, labels ...string) float64 {
	found := -1.0
	for series, v := range m {
		of, set, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
		if of == name && hasLabels(set, labels) {
			if found != -1 {
				return math.NaN()
			}
			found = v
		}
	}
	return found
}

func hasLabels(set string, labels []string) bool {
	for _, l := range labels {
		name, value, _ := strings.Cut(l, "=")
		if !strings.Contains(","+set+",", fmt.Sprintf(",%s=%q,", name, value)) {
			return false
		}
	}
	return true
}
