package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/cmd/ksnoop-exporter/probes"
	ksnoop "github.com/ksnoop/ksnoop/runtime"
)

// callsEnv makes the test binary make system calls: NAME=N[,NAME=N...], for each NAME
// N calls of getppid by a thread of that name.
const callsEnv = "KSNOOP_EXPORTER_CALLS"

func TestMain(m *testing.M) {
	if calls := os.Getenv(callsEnv); calls != "" {
		makeCalls(calls)
		return
	}
	status := m.Run()
	os.RemoveAll(buildDir) // "" removes nothing
	os.Exit(status)
}

// buildDir is the directory of the exporter that tests run, or "" before it is built.
var buildDir string

func makeCalls(calls string) {
	goruntime.LockOSThread()
	for _, part := range strings.Split(calls, ",") {
		var n int
		name, count, _ := strings.Cut(part, "=")
		if _, err := fmt.Sscan(count, &n); err != nil {
			panic(err)
		}
		text, _ := unix.BytePtrFromString(name)
		if err := unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(text)), 0, 0, 0); err != nil {
			panic(err)
		}
		for range n {
			unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0)
		}
	}
}

// call lets another process make calls, as the exporter's own are not counted.
func call(t *testing.T, calls string) { callBy(t, calls, func(*exec.Cmd) {}) }

// callBy lets a process make calls whose command was prepared.
func callBy(t *testing.T, calls string, prepare func(*exec.Cmd)) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), callsEnv+"="+calls)
	prepare(cmd)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// built returns the exporter, built as the Makefile does.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "ksnoop-exporter")
	if err != nil {
		return "", err
	}
	buildDir = dir
	name := filepath.Join(dir, "ksnoop-exporter")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-ldflags", "-s -w -X main.version=v0.0-test", "-o", name, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return name, nil
})

// exporting is a running exporter.
type exporting struct {
	t    *testing.T
	cmd  *exec.Cmd
	log  *log
	url  string
	file string
}

// log collects what a program says.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// patience is how long anything may take on a machine with other work.
const patience = time.Minute

// awaitLog waits until the exporter has said a text n times.
func (e *exporting) awaitLog(text string, n int) {
	e.t.Helper()
	require.Eventually(e.t, func() bool { return strings.Count(e.log.String(), text) >= n }, patience, 5*time.Millisecond, "%s", e.log)
}

// export starts an exporter of a probe file.
func export(t *testing.T, file string, args ...string) *exporting {
	return exportAs(t, func(*exec.Cmd) {}, file, args...)
}

// exportAs starts an exporter of a probe file by a command that was prepared.
func exportAs(t *testing.T, prepare func(*exec.Cmd), file string, args ...string) *exporting {
	if refusal := ksnoop.ReadPrivileges().Refusal(); refusal != "" {
		t.Skip(refusal)
	}
	program, err := built()
	require.NoError(t, err)
	e := &exporting{t: t, log: &log{}, file: filepath.Join(t.TempDir(), "test.probes")}
	e.write(file)
	e.cmd = exec.Command(program, append(append([]string{"--listen", "127.0.0.1:0"}, args...), e.file)...)
	e.cmd.Stderr = e.log
	prepare(e.cmd)
	require.NoError(t, e.cmd.Start())
	t.Cleanup(func() {
		if e.cmd.ProcessState == nil {
			e.cmd.Process.Kill()
			e.cmd.Wait()
		}
	})
	e.awaitLog("/metrics\n", 1)
	_, url, _ := strings.Cut(e.log.String(), "http://")
	e.url, _, _ = strings.Cut("http://"+url, "/metrics")
	return e
}

func (e *exporting) write(file string) {
	require.NoError(e.t, os.WriteFile(e.file, []byte("ksnoop-probes 1\nsuite t\n"+file), 0o644))
}

// get returns the status and the body of a page.
func (e *exporting) get(path string) (int, string) {
	r, err := http.Get(e.url + path)
	require.NoError(e.t, err)
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	require.NoError(e.t, err)
	return r.StatusCode, string(b)
}

// scrape returns all metrics.
func (e *exporting) scrape() metrics {
	status, text := e.get("/metrics")
	require.Equal(e.t, http.StatusOK, status, text)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	require.NoError(e.t, err)
	return families
}

func (e *exporting) signal(s syscall.Signal) { require.NoError(e.t, e.cmd.Process.Signal(s)) }

type metrics map[string]*dto.MetricFamily

// find returns the metric with labels, written a=b, or nil.
func (m metrics) find(name string, labels ...string) *dto.Metric {
	for _, metric := range m[name].GetMetric() {
		has := map[string]bool{}
		for _, l := range metric.Label {
			has[l.GetName()+"="+l.GetValue()] = true
		}
		all := true
		for _, l := range labels {
			all = all && has[l]
		}
		if all {
			return metric
		}
	}
	return nil
}

// value returns a counter or gauge, or -1 if there is none.
func (m metrics) value(name string, labels ...string) float64 {
	metric := m.find(name, labels...)
	switch {
	case metric.GetCounter() != nil:
		return metric.GetCounter().GetValue()
	case metric.GetGauge() != nil:
		return metric.GetGauge().GetValue()
	}
	return -1
}

// ofTest is a condition for the calls that [call] makes.
var ofTest = fmt.Sprintf(`if id == %d && $comm ~ "exp-*"`, unix.SYS_GETPPID)

// TestCounts compares what is served with the calls that were made.
func TestCounts(t *testing.T) {
	e := export(t, `
metric calls  tp:sys_enter($comm, count(), hist(id), sum(id), max(id), min(id)) `+ofTest+` table
metric mean   tp:sys_enter(avg(id)) `+ofTest+` table
metric lines  tp:sys_enter(lhist(id, 0, 400, 100)) `+ofTest+` table
metric all    tp:sys_enter() `+ofTest+` count
metric ids    tp:sys_enter(id) `+ofTest+` sum
metric sizes  tp:sys_enter(id) `+ofTest+` histogram
metric spans  tp:sys_enter($comm) `+ofTest+` => tp:sys_exit(hist($duration), max($duration)) on $tid table
`)
	before := e.scrape()
	require.Equal(t, 0.0, before.value("ksnoop_t_all_total"), "a counter without labels begins at 0")
	call(t, "exp-a=1000,exp-b=300")
	m := e.scrape()
	id := float64(unix.SYS_GETPPID)
	for name, n := range map[string]float64{"exp-a": 1000, "exp-b": 300} {
		label := "comm=" + name
		require.Equal(t, n, m.value("ksnoop_t_calls_total", label))
		require.Equal(t, id, m.value("ksnoop_t_calls_id_max", label))
		require.Equal(t, id, m.value("ksnoop_t_calls_id_min", label))
		h := m.find("ksnoop_t_calls_id", label).GetHistogram()
		require.Equal(t, uint64(n), h.GetSampleCount())
		require.Equal(t, n*id, h.GetSampleSum())
		for _, b := range h.Bucket {
			want := uint64(0)
			if b.GetUpperBound() >= id {
				want = uint64(n)
			}
			require.Equal(t, want, b.GetCumulativeCount(), "le=%v", b.GetUpperBound())
		}
		spans := m.find("ksnoop_t_spans_duration_seconds", label).GetHistogram()
		require.Equal(t, uint64(n), spans.GetSampleCount())
		most := m.value("ksnoop_t_spans_duration_seconds_max", label)
		require.Greater(t, most, 0.0)
		require.Less(t, most, patience.Seconds())
		require.LessOrEqual(t, spans.GetSampleSum(), n*most)
		require.GreaterOrEqual(t, spans.GetSampleSum(), most)
	}
	require.Equal(t, 1300.0, m.value("ksnoop_t_all_total"))
	require.Equal(t, 1300*id, m.value("ksnoop_t_ids_total"))
	mean := m.find("ksnoop_t_mean").GetSummary()
	require.Equal(t, uint64(1300), mean.GetSampleCount())
	require.Equal(t, 1300*id, mean.GetSampleSum())
	require.Equal(t, 1300*id, m.find("ksnoop_t_sizes").GetHistogram().GetSampleSum())
	lines := m.find("ksnoop_t_lines").GetHistogram()
	require.Equal(t, uint64(1300), lines.GetSampleCount())
	require.Equal(t, 1300*id, lines.GetSampleSum())
	var edges []float64
	for _, b := range lines.Bucket {
		edges = append(edges, b.GetUpperBound())
	}
	require.Subset(t, edges, []float64{-1, 99, 199, 299, 399})
	for _, reason := range []string{"missed", "no_room", "unpaired", "table_full"} {
		require.Equal(t, 0.0, m.value("ksnoop_probe_lost_calls_total", "metric=calls", "reason="+reason))
	}
	require.Equal(t, 1300.0, m.value("ksnoop_probe_calls_total", "metric=calls", "matched=true"))
	require.Equal(t, 2.0, m.value("ksnoop_probe_series", "metric=calls"))
	require.Equal(t, 1.0, m.value("ksnoop_probe_functions", "metric=calls", "attach=tp_btf"))
	require.Equal(t, 1.0, m.value("ksnoop_build_info", "version=v0.0-test"))
}

// TestOverflow verifies that keys for which no series is left are counted together,
// and that a series stays what it was.
func TestOverflow(t *testing.T) {
	e := export(t, "metric calls tp:sys_enter($comm, count(), max(id)) "+ofTest+" table\n", "--series", "2")
	call(t, "exp-a=10,exp-b=500,exp-c=400")
	m := e.scrape()
	require.Equal(t, 500.0, m.value("ksnoop_t_calls_total", "comm=exp-b"), "those with most calls have a series")
	require.Equal(t, 400.0, m.value("ksnoop_t_calls_total", "comm=exp-c"))
	require.Equal(t, 10.0, m.value("ksnoop_t_calls_total", "comm=(other)"))
	call(t, "exp-a=9000,exp-d=1,exp-c=5")
	m = e.scrape()
	require.Equal(t, 405.0, m.value("ksnoop_t_calls_total", "comm=exp-c"))
	require.Equal(t, 9011.0, m.value("ksnoop_t_calls_total", "comm=(other)"))
	require.Equal(t, float64(unix.SYS_GETPPID), m.value("ksnoop_t_calls_id_max", "comm=(other)"))
	require.Len(t, m["ksnoop_t_calls_total"].Metric, 3)
	require.Equal(t, 2.0, m.value("ksnoop_probe_series", "metric=calls"))
}

// TestFullTable verifies that calls of keys for which the kernel has no room are said
// to be in no count.
func TestFullTable(t *testing.T) {
	e := export(t, "metric calls tp:sys_enter($comm, count()) "+ofTest+" table\n", "--keys", "2")
	call(t, "exp-a=10,exp-b=20,exp-c=30")
	m := e.scrape()
	require.Equal(t, 30.0, m.value("ksnoop_t_calls_total", "comm=exp-a")+m.value("ksnoop_t_calls_total", "comm=exp-b"))
	require.Equal(t, 30.0, m.value("ksnoop_probe_lost_calls_total", "metric=calls", "reason=table_full"))
}

// TestReload verifies that lines which stay keep their counts, that others come and
// go, and that a bad file changes nothing.
func TestReload(t *testing.T) {
	const stays = "metric stays tp:sys_enter(count()) "
	e := export(t, stays+ofTest+" table\nmetric goes tp:sys_enter() "+ofTest+" count\n")
	call(t, "exp-a=100")
	e.write(stays + ofTest + " table\nmetric comes tp:sys_enter() " + ofTest + " count\n")
	e.signal(syscall.SIGHUP)
	e.awaitLog("the probe files are read again: 2 of 2 metrics are counted", 1)
	call(t, "exp-a=10")
	m := e.scrape()
	require.Equal(t, 110.0, m.value("ksnoop_t_stays_total"))
	require.Equal(t, 10.0, m.value("ksnoop_t_comes_total"))
	require.Equal(t, -1.0, m.value("ksnoop_t_goes_total"))
	at := m.value("ksnoop_exporter_config_last_reload_success_timestamp_seconds")

	for i, bad := range []struct{ file, says string }{
		{"metric stays tp:sys_enter(id", "')' is missing"},
		{"metric stays tp:sys_enter(idd) sum", "sys_enter has no argument 'idd'"},
		{"metric stays tp:sys_enter() count scope task", "stays has the scope of a command"},
	} {
		e.write(bad.file + "\n")
		e.signal(syscall.SIGHUP)
		e.awaitLog("what was counted before is still counted", i+1)
		require.Contains(t, e.log.String(), bad.says)
		call(t, "exp-a=1")
		m = e.scrape()
		require.Equal(t, 0.0, m.value("ksnoop_exporter_config_last_reload_successful"))
		require.Equal(t, at, m.value("ksnoop_exporter_config_last_reload_success_timestamp_seconds"))
		require.Equal(t, float64(111+i), m.value("ksnoop_t_stays_total"))
		require.Equal(t, float64(11+i), m.value("ksnoop_t_comes_total"))
	}
	require.NoError(t, os.Remove(e.file))
	e.signal(syscall.SIGHUP)
	e.awaitLog("what was counted before is still counted", 4)

	e.write(stays + ofTest + " table\n")
	e.signal(syscall.SIGHUP)
	e.awaitLog("the probe files are read again: 1 of 1 metrics are counted", 1)
	m = e.scrape()
	require.Equal(t, 113.0, m.value("ksnoop_t_stays_total"))
	require.Equal(t, -1.0, m.value("ksnoop_t_comes_total"))
	require.Equal(t, 1.0, m.value("ksnoop_exporter_config_last_reload_successful"))
}

// TestManifest runs the exporter with the probe file and the capabilities of
// docs/kubernetes/exporter.yaml, in a pid namespace of its own.
func TestManifest(t *testing.T) {
	manifest, err := os.ReadFile("../../docs/kubernetes/exporter.yaml")
	require.NoError(t, err)
	_, text, ok := strings.Cut(string(manifest), "  node.probes: |\n")
	require.True(t, ok)
	text, _, _ = strings.Cut(text, "\n---\n")
	text = strings.ReplaceAll("\n"+text, "\n    ", "\n")
	text, ok = strings.CutPrefix(text, "\nksnoop-probes 1\nsuite node\n")
	require.True(t, ok, text)
	e := exportAs(t, contain, text+"\nmetric all tp:sys_enter() "+ofTest+" count\n")
	require.Contains(t, e.log.String(), "6 of 6 metrics are counted")
	call(t, "exp-a=60")
	m := e.scrape()
	require.Equal(t, 60.0, m.value("ksnoop_t_all_total"))
	require.GreaterOrEqual(t, m.value("ksnoop_t_syscalls_total", fmt.Sprintf("id=%d", unix.SYS_GETPPID)), 60.0)
	require.NotZero(t, m.find("ksnoop_t_run_queue_seconds").GetHistogram().GetSampleCount())
	require.Equal(t, 0.0, m.value("ksnoop_t_oom_kills_total"))
}

// TestPage verifies that the probe file of docs/exporter.md gives the metrics that the
// page asks Prometheus for. The names of functions are those of tracepoints here, as
// these can be attached to everywhere.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/exporter.md")
	require.NoError(t, err)
	_, text, _ := strings.Cut(string(page), "```probes\nksnoop-probes 1\nsuite node\n")
	text, _, ok := strings.Cut(text, "```\n")
	require.True(t, ok)
	suites, err := probes.Read([]string{writeFile(t, "ksnoop-probes 1\nsuite node\n"+text)})
	require.NoError(t, err)
	require.Len(t, suites[0].Metrics, 5)
	for function, span := range map[string]string{
		"vfs_fsync_range($comm, hist($duration))": "tp:sys_enter($comm) " + ofTest + " => tp:sys_exit(hist($duration)) on $tid",
		"tcp_sendmsg(return) if return > 0":       "tp:sys_enter(id) if id > 0",
		"tcp_retransmit_skb()":                    "tp:sys_enter()",
	} {
		require.Contains(t, text, function)
		text = strings.Replace(text, function, span, 1)
	}
	e := export(t, text)
	require.Contains(t, e.log.String(), "5 of 5 metrics are counted")
	call(t, "exp-a=10")
	m := e.scrape()
	require.Equal(t, uint64(10), m.find("ksnoop_t_fsync_seconds", "comm=exp-a").GetHistogram().GetSampleCount())
	require.Contains(t, string(page), "histogram_quantile(0.99, sum by (le) (rate(ksnoop_node_fsync_seconds_bucket[5m])))")
	require.GreaterOrEqual(t, m.value("ksnoop_t_sent_bytes_total"), 10.0*unix.SYS_GETPPID)
	require.GreaterOrEqual(t, m.value("ksnoop_t_retransmits_total"), 10.0)
	require.Equal(t, 0.0, m.value("ksnoop_t_oom_kills_total"))
	for name := range m {
		if strings.HasPrefix(name, "ksnoop_probe_") || strings.HasPrefix(name, "ksnoop_exporter_") {
			documented := strings.Contains(string(page), "`"+name+"`") || strings.Contains(name, "config_last_reload_success")
			require.True(t, documented, name)
		}
	}
}

// writeFile writes a probe file and returns its name.
func writeFile(t *testing.T, text string) string {
	name := filepath.Join(t.TempDir(), "x.probes")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	return name
}

// contain lets a command run as in a container: in a pid namespace, with two
// capabilities that nothing can add to.
func contain(cmd *exec.Cmd) {
	cmd.Args = append([]string{"setpriv", "--bounding-set", "-all,+bpf,+perfmon", "--inh-caps", "-all", cmd.Path}, cmd.Args[1:]...)
	cmd.Path, cmd.Err = exec.LookPath("setpriv")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
}

// TestProbesThatFail verifies that a line that this kernel cannot count leaves the
// others alone.
func TestProbesThatFail(t *testing.T) {
	e := export(t, `
metric works   tp:sys_enter() `+ofTest+` count
metric absent  no_such_function() count
metric wrong   tp:sys_enter(regs->nonesuch) sum
`)
	require.Contains(t, e.log.String(), "metric absent: there is no function no_such_function in this kernel")
	require.Contains(t, e.log.String(), "metric wrong: ")
	require.Contains(t, e.log.String(), "no member 'nonesuch'")
	require.Contains(t, e.log.String(), "1 of 3 metrics are counted")
	call(t, "exp-a=7")
	m := e.scrape()
	require.Equal(t, 7.0, m.value("ksnoop_t_works_total"))
	require.Equal(t, 1.0, m.value("ksnoop_probe_up", "metric=works"))
	require.Equal(t, 0.0, m.value("ksnoop_probe_up", "metric=absent"))
	require.Equal(t, 0.0, m.value("ksnoop_probe_up", "metric=wrong"))
	require.Equal(t, -1.0, m.value("ksnoop_t_absent_total"))
	e.signal(syscall.SIGHUP) // what had failed before does not keep the files from being read
	e.awaitLog("the probe files are read again: 1 of 3 metrics are counted", 1)
	require.Equal(t, 7.0, e.scrape().value("ksnoop_t_works_total"))
}

// TestLife verifies the pages besides the metrics, what privileges are left, and the
// end.
func TestLife(t *testing.T) {
	e := export(t, "metric all tp:sys_enter() "+ofTest+" count\n")
	for path, want := range map[string]int{"/": 200, "/-/healthy": 200, "/-/ready": 200, "/nothing": 404} {
		status, _ := e.get(path)
		require.Equal(t, want, status, path)
	}
	e.scrape()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", e.cmd.Process.Pid))
	require.NoError(t, err)
	require.NotEmpty(t, tasks)
	for _, name := range tasks {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		permitted := uint64(1<<unix.CAP_BPF | 1<<unix.CAP_PERFMON)
		require.Contains(t, string(text), fmt.Sprintf("\nCapPrm:\t%016x\nCapEff:\t%016x\n", permitted, 0))
		require.Contains(t, string(text), "\nNoNewPrivs:\t1\n")
	}
	e.signal(syscall.SIGTERM)
	require.NoError(t, e.cmd.Wait())
}

// TestNotReady verifies that probes which are not attached, or cannot be read, are not ready,
// while the exporter is healthy.
func TestNotReady(t *testing.T) {
	gauge := func(name string) prometheus.Gauge { return prometheus.NewGauge(prometheus.GaugeOpts{Name: name}) }
	e := exporter{reloaded: gauge("reloaded"), reloadedAt: gauge("reloaded_at")}
	handler := e.handler()
	get := func(path string) (int, string) {
		r := httptest.NewRecorder()
		handler.ServeHTTP(r, httptest.NewRequest(http.MethodGet, path, nil))
		return r.Code, r.Body.String()
	}
	expect := func(status int, text string) {
		got, body := get("/-/ready")
		require.Equal(t, status, got)
		require.Equal(t, text+"\n", body)
		got, _ = get("/-/healthy")
		require.Equal(t, http.StatusOK, got)
	}
	expect(http.StatusServiceUnavailable, "the probes are not attached yet")
	e.collector.Put(&probes.Set{Probes: []*probes.Probe{{Name: "reads"}}})
	expect(http.StatusOK, "ksnoop-exporter is ready")
	e.collector.Reading = func(func() error) error { return errors.New("no such map") }
	status, _ := get("/metrics")
	require.Equal(t, http.StatusInternalServerError, status)
	expect(http.StatusServiceUnavailable, "the counts cannot be read: metric reads: no such map")
	e.collector.Reading = nil
	status, _ = get("/metrics")
	require.Equal(t, http.StatusOK, status)
	expect(http.StatusOK, "ksnoop-exporter is ready")
}

// TestUsage lists what is wrong with command lines and files.
func TestUsage(t *testing.T) {
	file := func(text string) string { return writeFile(t, "ksnoop-probes 1\nsuite x\n"+text+"\n") }
	good := file("metric a tp:sys_enter() count")
	for _, test := range []struct {
		args []string
		says string
	}{
		{nil, "no probe file is given: as in ksnoop-exporter node.probes"},
		{[]string{"/nonexistent"}, "read the probe file: open /nonexistent: no such file or directory"},
		{[]string{"--series", "0", good}, "--series is 0: the limits are 1 and 1048576"},
		{[]string{"--keys", "0", good}, "--keys is 0: the limits are 1 and 1048576"},
		{[]string{"--keys", "-1", good}, "--keys is -1: the limits are 1 and 1048576"},
		{[]string{good, "--keys", "5"}, "--keys is behind a probe file: options come first"},
		{[]string{"--nonesuch"}, "flag provided but not defined: -nonesuch"},
		{[]string{file("assert a tp:sys_enter() never")}, "has no metric: write a line like"},
		{[]string{good, good}, "x.probes:3: ksnoop_x_a is the metric of"},
		{[]string{file("metric a-b tp:sys_enter() count\nmetric a.b tp:sys_enter() count")}, "ksnoop_x_a_b is the metric of"},
		{[]string{file("metric a-b tp:sys_enter() count\nmetric a.b tp:sys_enter() count\nmetric a+b tp:sys_enter() count")}, "\nksnoop-exporter: "}, // for each error
		{[]string{"--listen", "", good}, `--listen is "": it must be a host and a port, as in 127.0.0.1:9536`},
		{[]string{"--listen", "127.0.0.1", good}, `--listen is "127.0.0.1": it must be`},
		{[]string{"--listen", "[::1", good}, `--listen is "[::1": it must be`},
		{[]string{"--listen", ":99999", good}, `--listen is ":99999": it must be`},
		{[]string{"--listen", ":nosuch", good}, `--listen is ":nosuch": it must be`},
		{[]string{file("metric a 'p vfs_read n=$arg3' sum")}, "a kprobe_events line can be counted, and not be added up"},
		{[]string{file("metric a vfs_read(count:be) sum")}, "the format be changes the value"},
		{[]string{file("metric a vfs_read(count) sum scope cgroup")}, "a has the scope of a command"},
	} {
		var out, errs bytes.Buffer
		require.Equal(t, 2, status(append([]string{"ksnoop-exporter"}, test.args...), &out, &errs), "%v %s", test.args, &errs)
		require.Contains(t, errs.String(), test.says)
	}
	var out, errs bytes.Buffer
	require.Equal(t, 0, status([]string{"ksnoop-exporter", "--version"}, &out, &errs))
	require.Contains(t, out.String(), "ksnoop-exporter version")
}

// TestUnread verifies that clients that do not read their answers keep no others from theirs.
func TestUnread(t *testing.T) {
	busy := make(chan struct{}, 1)
	server := httptest.NewServer(complete(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case busy <- struct{}{}:
			defer func() { <-busy }()
			w.Header().Set("Kept", "yes")
			w.WriteHeader(http.StatusAccepted)
			_, _ = w.Write(make([]byte, 16<<20)) // more than sockets take
		default:
			http.Error(w, "busy", http.StatusServiceUnavailable)
		}
	})))
	var unread []net.Conn
	defer func() {
		for _, c := range unread {
			c.Close()
		}
		server.Close()
	}()
	for range 3 {
		c, err := net.Dial("tcp", server.Listener.Addr().String())
		require.NoError(t, err)
		unread = append(unread, c)
		_, err = c.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
		require.NoError(t, err)
		_, err = io.ReadFull(c, make([]byte, 100)) // it is being sent
		require.NoError(t, err)
	}
	got, err := http.Get(server.URL)
	require.NoError(t, err)
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusAccepted, got.StatusCode)
	require.Equal(t, "yes", got.Header.Get("Kept"))
	require.Len(t, body, 16<<20)
}
