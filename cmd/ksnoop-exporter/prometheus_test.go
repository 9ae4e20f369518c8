package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var full = flag.Bool("full", false, "run Prometheus, too; its package is downloaded")

// TestPrometheus lets Debian's Prometheus scrape the exporter by the configuration of
// docs/exporter.md, and compares its answers with the calls that were made, also after
// either of them was killed.
func TestPrometheus(t *testing.T) {
	if !*full {
		t.Skip("runs with -full")
	}
	const file = "metric calls tp:sys_enter($comm, count(), hist(id)) "
	address := freeAddress(t)
	e := export(t, file+ofTest+" table\nmetric absent no_such_function() count\n", "--listen", address)
	call(t, "exp-a=1000,exp-b=300")
	p := newPrometheus(t, address)
	p.start()
	p.await(`up`, 1)
	p.await(`ksnoop_t_calls_total{comm="exp-a"}`, 1000)
	p.await(`sum(ksnoop_t_calls_total)`, 1300)
	p.await(`ksnoop_t_calls_id_count{comm="exp-b"}`, 300)
	p.await(`ksnoop_t_calls_id_bucket{comm="exp-b",le="+Inf"} - ignoring(le) ksnoop_t_calls_id_bucket{comm="exp-b",le="63"}`, 300)
	p.await(`sum(ksnoop_probe_lost_calls_total)`, 0)
	p.await(`count(ALERTS{alertname="KsnoopNotCounting",metric="absent",alertstate="firing"})`, 1)
	p.await(`absent(ALERTS{alertname="KsnoopCallsLost"})`, 1)

	p.kill() // its scrapes are missing, but no calls are
	call(t, "exp-a=24")
	p.start()
	p.await(`ksnoop_t_calls_total{comm="exp-a"}`, 1024)
	p.await(`resets(ksnoop_t_calls_total{comm="exp-a"}[10m])`, 0)

	p.lint(e)

	p.kill()
	call(t, "exp-a=5") // after the last scrape: these are lost
	require.NoError(t, e.cmd.Process.Kill())
	require.Error(t, e.cmd.Wait())
	p.start()
	p.await(`up`, 0)
	export(t, file+ofTest+" table\n", "--listen", address)
	call(t, "exp-a=50")
	p.await(`ksnoop_t_calls_total{comm="exp-a"}`, 50)
	p.await(`resets(ksnoop_t_calls_total{comm="exp-a"}[10m])`, 1)
	p.await(`max_over_time(ksnoop_t_calls_total{comm="exp-a"}[10m]) + ksnoop_t_calls_total{comm="exp-a"}`, 1074)
	p.await(`changes(process_start_time_seconds[10m])`, 1) // which says that calls may be lost
}

// freeAddress returns an address at which nothing listens.
func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// prometheusServer is a Prometheus with its files.
type prometheusServer struct {
	t            *testing.T
	program, dir string
	address      string
	cmd          *exec.Cmd
	log          *log
}

// newPrometheus writes the configuration of docs/exporter.md, for an exporter at
// another address and with shorter intervals.
func newPrometheus(t *testing.T, exporter string) *prometheusServer {
	p := &prometheusServer{t: t, dir: t.TempDir(), address: freeAddress(t), log: &log{}}
	p.program = unpacked(t, "prometheus") + "/usr/bin/prometheus"
	page, err := os.ReadFile("../../docs/exporter.md")
	require.NoError(t, err)
	files := regexp.MustCompile("(?ms)^```yaml file=(\\S+)\n(.*?)^```$").FindAllStringSubmatch(string(page), -1)
	require.Len(t, files, 2)
	for _, f := range files {
		text := f[2]
		if f[1] == "prometheus.yml" {
			require.Contains(t, text, "scrape_interval: 15s\n")
			require.Contains(t, text, `"127.0.0.1:9536"`)
			text = strings.Replace(text, "scrape_interval: 15s\n", "scrape_interval: 1s\n  evaluation_interval: 1s\n", 1)
			text = strings.Replace(text, "127.0.0.1:9536", exporter, 1)
		}
		require.NoError(t, os.WriteFile(filepath.Join(p.dir, f[1]), []byte(text), 0o644))
	}
	out, err := exec.Command(filepath.Join(filepath.Dir(p.program), "promtool"), "check", "config", filepath.Join(p.dir, "prometheus.yml")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Cleanup(func() {
		if p.cmd != nil {
			p.kill()
		}
	})
	return p
}

// unpacked returns a directory with the files of a package of Debian, which is not
// installed, as that would start a server.
func unpacked(t *testing.T, name string) string {
	if _, err := exec.LookPath("apt-get"); err != nil && os.Getenv("CI") != "true" {
		t.Skip("packages come from apt: ", err)
	}
	dir := t.TempDir()
	run := func(command string) error {
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", command, err, out)
		}
		return nil
	}
	if run("apt-get download "+name) != nil { // a fresh machine has no lists
		require.NoError(t, run("apt-get update && apt-get download "+name))
	}
	require.NoError(t, run("dpkg-deb -x *.deb ."))
	return dir
}

func (p *prometheusServer) start() {
	p.cmd = exec.Command(p.program, "--config.file="+filepath.Join(p.dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(p.dir, "data"),
		"--web.listen-address="+p.address)
	p.cmd.Stderr = p.log
	require.NoError(p.t, p.cmd.Start())
	require.Eventually(p.t, func() bool {
		r, err := http.Get("http://" + p.address + "/-/ready")
		if err != nil {
			return false
		}
		r.Body.Close()
		return r.StatusCode == http.StatusOK
	}, patience, 50*time.Millisecond, "%s", p.log)
}

func (p *prometheusServer) kill() {
	require.NoError(p.t, p.cmd.Process.Kill())
	require.Error(p.t, p.cmd.Wait())
	p.cmd = nil
}

// lint lets promtool judge the names of all metrics.
func (p *prometheusServer) lint(e *exporting) {
	status, text := e.get("/metrics")
	require.Equal(p.t, http.StatusOK, status)
	cmd := exec.Command(filepath.Join(filepath.Dir(p.program), "promtool"), "check", "metrics")
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.CombinedOutput()
	require.NoError(p.t, err, "%s", out)
}

// await asks until the answer is the number want. It fails the test if it never is.
func (p *prometheusServer) await(query string, want float64) {
	p.t.Helper()
	answer := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		answer = p.ask(query)
		if n, err := strconv.ParseFloat(answer, 64); err == nil && n == want {
			return
		}
	}
	p.t.Fatalf("%s is %s, and not %v\n%s", query, answer, want, p.log)
}

// ask returns the value of an answer, or the whole answer if it does not have exactly one.
func (p *prometheusServer) ask(query string) string {
	r, err := http.Get("http://" + p.address + "/api/v1/query?query=" + url.QueryEscape(query))
	require.NoError(p.t, err)
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	require.NoError(p.t, err)
	var answer struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	require.NoError(p.t, json.Unmarshal(body, &answer), "%s", body)
	if len(answer.Data.Result) != 1 {
		return string(body)
	}
	return fmt.Sprint(answer.Data.Result[0].Value[1])
}
