package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"golang.org/x/sys/unix"
)

// collectorEnv makes the test binary run as the collector, so that it is linked only once.
const collectorEnv = "KSNOOP_TEST_COLLECTOR"

func TestMain(m *testing.M) {
	if os.Getenv(collectorEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// patience is how long anything may take on a machine with other work.
const patience = 2 * time.Minute

// TestCollector lets a collector read what ksnoop writes, by the configuration of
// docs/fleet.md: each line arrives, also if the collector ends, is killed while it reads,
// or has nobody to send to. What comes twice after a kill has the log.record.uid of the first.
func TestCollector(t *testing.T) {
	k := startTrace(t, filepath.Join(t.TempDir(), "calls.json"))
	b := newBackend(t)
	c := newCollector(t, b, k.file, page(t))
	c.start()
	call(1000)
	b.awaitLines(k.awaitEvents(1000))

	c.stop(syscall.SIGTERM)
	call(500)
	c.start()
	b.awaitLines(k.awaitEvents(1500))
	require.Zero(t, b.doubles(), "an end in order sends nothing twice")

	var more sync.WaitGroup
	more.Go(func() {
		for range 40 {
			call(500)
			time.Sleep(20 * time.Millisecond)
		}
	})
	b.awaitCount(4000)
	c.stop(syscall.SIGKILL)
	more.Wait()
	c.start()
	b.awaitLines(k.awaitEvents(21_500))
	t.Logf("%d of %d records came twice after a kill", b.doubles(), len(b.all()))

	b.refuse(true)
	call(300)
	k.awaitEvents(21_800)
	b.awaitRefused()
	c.stop(syscall.SIGKILL)
	b.refuse(false)
	c.start()
	b.awaitLines(k.awaitEvents(21_800))

	k.end()
	b.awaitLines(k.lines())
	checkRecords(t, b.all(), map[string]string{"service.name": "ksnoop", "host.name": "node-7"})
	require.Equal(t, 43_600, k.summary("delivered"), "two probes see each call")
}

// TestCollectorLoss checks that what does not arrive is known: what ksnoop has lost, and
// what was removed before the collector has read it.
func TestCollectorLoss(t *testing.T) {
	k := startTrace(t, filepath.Join(t.TempDir(), "lost.json"), "--pages", "1")
	b := newBackend(t)
	c := newCollector(t, b, k.file, page(t))
	c.start()
	call(10)
	b.awaitLines(k.awaitEvents(10))
	require.NoError(t, k.cmd.Process.Signal(syscall.SIGSTOP))
	call(10_000)
	require.NoError(t, k.cmd.Process.Signal(syscall.SIGCONT))
	lost := func() (n int) { // of each probe the last number counts, which is the largest
		most := map[any]int{}
		for _, r := range b.all() {
			if body := r.body.(map[string]any); body["type"] == "loss" {
				require.Equal(t, "WARN", r.severity)
				most[body["func"]] = max(most[body["func"]], number(body["lost"]))
			}
		}
		for _, one := range most {
			n += one
		}
		return n
	}
	require.Eventually(t, func() bool { return lost() > 0 && len(b.all()) == len(k.lines()) }, patience, 50*time.Millisecond)

	c.stop(syscall.SIGKILL)
	read := len(k.lines())
	call(20)
	require.Eventually(t, func() bool { return len(k.lines()) == read+40 }, patience, 20*time.Millisecond)
	require.NoError(t, os.Truncate(k.file, 0))
	call(5)
	k.end()
	c.start()
	b.awaitCount(read + len(k.lines()))
	events := 0
	for _, r := range b.all() {
		if r.body.(map[string]any)["type"] == "event" {
			events++
		}
	}
	require.Equal(t, 40, k.summary("delivered")-events, "what was removed is the difference")
	require.Equal(t, lost(), k.summary("lost"))
}

// TestPodAnnotation reads a container's log as the annotation of
// docs/kubernetes/daemonset.yaml says: its lines have a head of the runtime, and the
// long ones are in parts.
func TestPodAnnotation(t *testing.T) {
	k := startTrace(t, filepath.Join(t.TempDir(), "calls.json"))
	call(100)
	k.awaitEvents(100)
	k.end()
	log := filepath.Join(t.TempDir(), "pods", "tracing_ksnoop-x7x2p_0a1b2c3d", "ksnoop", "0.log")
	require.NoError(t, os.MkdirAll(filepath.Dir(log), 0o755))
	var text bytes.Buffer
	for _, line := range k.lines() {
		const part = 150 // containerd takes 16 kB
		for ; len(line) > part; line = line[part:] {
			fmt.Fprintf(&text, "2026-11-23T06:00:00.000000001Z stdout P %s\n", line[:part])
		}
		fmt.Fprintf(&text, "2026-11-23T06:00:00.000000001Z stdout F %s\n", line)
	}
	require.NoError(t, os.WriteFile(log, text.Bytes(), 0o644))

	b := newBackend(t)
	newCollector(t, b, log, page(t), annotated(t)).start()
	b.awaitLines(k.lines())
	checkRecords(t, b.all(), map[string]string{
		"service.name": "ksnoop", "host.name": "node-7", "k8s.namespace.name": "tracing", "k8s.pod.name": "ksnoop-x7x2p",
		"k8s.pod.uid": "0a1b2c3d", "k8s.container.name": "ksnoop", "k8s.container.restart_count": "0",
	})
}

// page returns the configuration in docs/fleet.md.
func page(t *testing.T) []byte {
	text, err := os.ReadFile("../../docs/fleet.md")
	require.NoError(t, err)
	m := regexp.MustCompile("(?ms)^```yaml file=collector.yaml\n(.*?)^```$").FindSubmatch(text)
	require.NotNil(t, m)
	return m[1]
}

// annotated returns the configuration that the annotation of the DaemonSet makes of the
// receiver.
func annotated(t *testing.T) []byte {
	text, err := os.ReadFile("../../docs/kubernetes/daemonset.yaml")
	require.NoError(t, err)
	var daemons struct {
		Spec struct {
			Template struct {
				Metadata struct{ Annotations map[string]string }
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &daemons))
	annotations := daemons.Spec.Template.Metadata.Annotations
	require.Equal(t, "true", annotations["io.opentelemetry.discovery.logs/enabled"])
	var receiver map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(annotations["io.opentelemetry.discovery.logs/config"]), &receiver))
	require.NotEmpty(t, receiver)
	receiver["include_file_path"] = true // as receiver_creator does
	out, err := yaml.Marshal(map[string]any{"receivers": map[string]any{"file_log": receiver}})
	require.NoError(t, err)
	return out
}

// collector is a collector with its files.
type collector struct {
	t    *testing.T
	args []string
	env  []string
	log  *os.File
	cmd  *exec.Cmd
}

// newCollector returns a collector that reads a file and sends to a backend.
func newCollector(t *testing.T, b *backend, file string, configs ...[]byte) *collector {
	dir := t.TempDir()
	log, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	c := &collector{t: t, log: log, args: []string{"--feature-gates", "stanza.synchronousLogEmitter"}}
	c.env = append(os.Environ(), collectorEnv+"=1", "COLLECTOR_STATE="+filepath.Join(dir, "state"), "KSNOOP_LINES="+file,
		"HOST_NAME=node-7", "OTLP_ENDPOINT="+b.url)
	for i, config := range configs {
		name := filepath.Join(dir, fmt.Sprint(i, ".yaml"))
		require.NoError(t, os.WriteFile(name, config, 0o644))
		c.args = append(c.args, "--config", name)
	}
	t.Cleanup(func() {
		if c.cmd != nil {
			c.cmd.Process.Kill()
			c.cmd.Wait()
		}
		if said, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("the collector said:\n%s", said)
		}
	})
	return c
}

func (c *collector) start() {
	c.cmd = exec.Command(os.Args[0], c.args...)
	c.cmd.Env, c.cmd.Stdout, c.cmd.Stderr = c.env, c.log, c.log
	require.NoError(c.t, c.cmd.Start())
}

// stop ends the collector by a signal.
func (c *collector) stop(s syscall.Signal) {
	require.NoError(c.t, c.cmd.Process.Signal(s))
	err := c.cmd.Wait()
	require.Equal(c.t, s == syscall.SIGTERM, err == nil, "%v", err)
	c.cmd = nil
}

// tracing is a ksnoop that appends lines to a file.
type tracing struct {
	t    *testing.T
	cmd  *exec.Cmd
	file string
}

// builtKsnoop is ksnoop, which is of another module.
var builtKsnoop = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "ksnoop")
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "ksnoop")
	cmd := exec.Command("go", "run", "./cmd/build", "-o", name)
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return name, nil
})

// caller is the name of the threads that make calls.
const caller = "collected"

// startTrace traces the calls of [call] on the running kernel, where it may attach to
// tracepoints, if not to functions.
func startTrace(t *testing.T, file string, args ...string) *tracing {
	if os.Geteuid() != 0 {
		t.Skip("tracing needs root")
	}
	program, err := builtKsnoop()
	require.NoError(t, err)
	out, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	require.NoError(t, err)
	defer out.Close()
	k := &tracing{t: t, file: file}
	k.cmd = exec.Command(program, append(append([]string{"-o", "json", "--time", "wall"}, args...),
		fmt.Sprintf(`tp:sys_enter(id, $comm) if $comm == %q && id == %d`, caller, unix.SYS_GETPPID),
		fmt.Sprintf(`tp:task_rename(comm) if $comm == %q`, caller))...)
	k.cmd.Stdout, k.cmd.Stderr = out, os.Stderr
	require.NoError(t, k.cmd.Start())
	t.Cleanup(func() {
		if k.cmd.ProcessState == nil {
			k.cmd.Process.Kill()
			k.cmd.Wait()
		}
	})
	require.Eventually(t, func() bool { return len(k.lines()) > 0 }, patience, 20*time.Millisecond, "ksnoop does not trace")
	return k
}

// call makes n calls in a thread of its own, and after each sets the name of the thread
// again.
func call(n int) {
	done := make(chan error)
	go func() {
		goruntime.LockOSThread() // the thread ends with this function
		name, _ := unix.BytePtrFromString(caller)
		err := unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(name)), 0, 0, 0)
		for range n {
			unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0)
			unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_NAME, uintptr(unsafe.Pointer(name)), 0)
		}
		done <- err
	}()
	if err := <-done; err != nil {
		panic(err)
	}
}

// lines returns the whole lines that are written.
func (k *tracing) lines() (all []string) {
	f, err := os.Open(k.file)
	require.NoError(k.t, err)
	defer f.Close()
	for r := bufio.NewReader(f); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			return all
		}
		all = append(all, strings.TrimSuffix(line, "\n"))
	}
}

// awaitEvents waits until the two events of each of n calls are written, and returns all
// lines.
func (k *tracing) awaitEvents(n int) (lines []string) {
	k.t.Helper()
	events := 0
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		events, lines = 0, k.lines()
		for _, line := range lines {
			if strings.HasPrefix(line, `{"type":"event"`) {
				events++
			}
		}
		if events == 2*n {
			return lines
		}
	}
	require.FailNow(k.t, "wrong events", "%d, and not %d", events, 2*n)
	return nil
}

// end ends ksnoop, which writes its summary.
func (k *tracing) end() {
	require.NoError(k.t, k.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(k.t, k.cmd.Wait())
}

// summary returns a sum over all probes of the last line.
func (k *tracing) summary(member string) (sum int) {
	lines := k.lines()
	var s struct {
		Type   string
		Probes []map[string]any
	}
	require.NoError(k.t, json.Unmarshal([]byte(lines[len(lines)-1]), &s))
	require.Equal(k.t, "summary", s.Type)
	for _, p := range s.Probes {
		sum += number(p[member])
	}
	return sum
}

// number returns a number from JSON or from a record, or 0 if v is not a number.
func number(v any) int {
	switch n := v.(type) {
	case int:
		return n
	case int64:
		return int(n)
	case float64:
		return int(n)
	}
	return 0
}
