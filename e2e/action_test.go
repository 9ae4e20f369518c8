//go:build linux

package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/e2e/vm"
)

// actionDir is the directory of the GitHub action.
const actionDir = "../.github/actions/ksnoop"

// An action is a composite GitHub action.
type action struct {
	Name, Description string
	Inputs            map[string]struct {
		Description, Default string
		Required             bool
	}
	Outputs map[string]struct{ Description, Value string }
	Runs    struct {
		Using string
		Steps []actionStep
	}
}

type actionStep struct {
	Name, ID, Shell, Run string
	Env                  map[string]string
}

func readAction(t *testing.T) (a action) {
	text, err := os.ReadFile(filepath.Join(actionDir, "action.yml"))
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalWithOptions(text, &a, yaml.Strict()))
	require.Equal(t, "composite", a.Runs.Using)
	require.Len(t, a.Runs.Steps, 2)
	return a
}

// inputOf matches the expression for an input, and outputOf that for the output of a step.
var (
	inputOf  = regexp.MustCompile(`^\$\{\{ inputs\.([a-z0-9]+) \}\}$`)
	outputOf = regexp.MustCompile(`^\$\{\{ steps\.run\.outputs\.([a-z]+) \}\}$`)
)

// A ghJob is a job as a runner sees it: its directories, its PATH, and the outputs of the last step.
type ghJob struct {
	dir, temp, path string
	env             []string
	outputs         map[string]string
}

func newJob(t *testing.T) *ghJob {
	return &ghJob{dir: t.TempDir(), temp: t.TempDir(), path: os.Getenv("PATH")}
}

// step runs a step of the action with inputs as GitHub's runner does, and returns what it prints and its exit status.
func (j *ghJob) step(t *testing.T, s actionStep, a action, with map[string]string) (printed string, status int) {
	t.Helper()
	require.Equal(t, "sh", s.Shell)
	files := t.TempDir()
	file := func(name string) string { return filepath.Join(files, name) }
	for _, name := range []string{"path", "output", "summary"} {
		require.NoError(t, os.WriteFile(file(name), nil, 0o644))
	}
	require.NoError(t, os.WriteFile(file("script.sh"), []byte(s.Run), 0o644))
	absolute, err := filepath.Abs(actionDir)
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "sh", "-e", file("script.sh"))
	cmd.Dir = j.dir
	cmd.Env = append(os.Environ(), "PATH="+j.path, "RUNNER_TEMP="+j.temp, "GITHUB_ACTION_PATH="+absolute, "GITHUB_PATH="+file("path"),
		"GITHUB_OUTPUT="+file("output"), "GITHUB_STEP_SUMMARY="+file("summary"))
	cmd.Env = append(cmd.Env, j.env...)
	for name, value := range s.Env {
		input := inputOf.FindStringSubmatch(value)
		require.NotNil(t, input, value)
		declared, ok := a.Inputs[input[1]]
		require.True(t, ok, value)
		text, ok := with[input[1]]
		if !ok {
			require.False(t, declared.Required, value)
			text = declared.Default
		}
		cmd.Env = append(cmd.Env, name+"="+text)
	}
	out, err := cmd.CombinedOutput()
	if _, failed := err.(*exec.ExitError); !failed {
		require.NoError(t, err)
	}
	added, err := os.ReadFile(file("path"))
	require.NoError(t, err)
	for dir := range strings.Lines(string(added)) {
		j.path = strings.TrimSpace(dir) + ":" + j.path
	}
	set, err := os.ReadFile(file("output"))
	require.NoError(t, err)
	j.outputs = map[string]string{}
	for line := range strings.Lines(string(set)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		require.True(t, ok, line)
		j.outputs[name] = value
	}
	summary, err := os.ReadFile(file("summary"))
	require.NoError(t, err)
	return string(out) + string(summary), cmd.ProcessState.ExitCode()
}

// TestActionText checks what GitHub's runner demands of the action, and that no input gets into the text of a script.
func TestActionText(t *testing.T) {
	a := readAction(t)
	require.NotEmpty(t, a.Name)
	require.NotEmpty(t, a.Description)
	for _, s := range a.Runs.Steps {
		require.NotContains(t, s.Run, "${{", "an input could end a word and begin a command")
		checkShell(t, s.Run)
	}
	for name, output := range a.Outputs {
		set := outputOf.FindStringSubmatch(output.Value)
		require.NotNil(t, set, output.Value)
		require.Contains(t, a.Runs.Steps[1].Run, set[1]+"=%s", name)
	}
	require.Equal(t, "run", a.Runs.Steps[1].ID)
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	var steps []struct {
		Uses string
		With map[string]string
	}
	_, step, ok := strings.Cut(string(readme), "```yaml\n")
	require.True(t, ok)
	step, _, _ = strings.Cut(step, "```")
	require.NoError(t, yaml.Unmarshal([]byte(step), &steps))
	require.Equal(t, "ksnoop/ksnoop/"+strings.TrimPrefix(actionDir, "../")+"@main", steps[0].Uses)
	for name := range steps[0].With {
		require.Contains(t, a.Inputs, name)
	}
}

// checkShell checks the syntax of a script.
func checkShell(t *testing.T, script string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-n")
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", out, script)
}

// TestWorkflow checks that docs/ci.md shows the commands that the action runs for its workflow. TestDocs checks their
// output. If the user is not root, the action runs tests by sudo.
func TestWorkflow(t *testing.T) {
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct {
				Uses string
				With map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(recipe(t, "workflow.yml")), &workflow))
	page, err := os.ReadFile("../docs/ci.md")
	require.NoError(t, err)
	a := readAction(t)
	for _, user := range []string{"0", "1000"} {
		j, bin := newJob(t), t.TempDir()
		j.path = bin + ":" + j.path
		shellScript(t, bin, "ksnoop", `echo "# ksnoop $*"`)
		shellScript(t, bin, "id", "echo "+user)
		shellScript(t, bin, "sudo", `[ "$1" = --preserve-env ] && shift && echo by sudo && exec "$@"`)
		used := 0
		for _, s := range workflow.Jobs["verdicts"].Steps {
			if !strings.HasPrefix(s.Uses, "ksnoop/ksnoop/"+strings.TrimPrefix(actionDir, "../")+"@") {
				continue
			}
			used++
			for name := range s.With {
				require.Contains(t, a.Inputs, name)
			}
			printed, status := j.step(t, a.Runs.Steps[1], a, s.With)
			require.Zero(t, status, printed)
			command, sudo := strings.CutPrefix(printed, "by sudo\n")
			require.Equal(t, user != "0" && s.With["run"] != "check", sudo, "only tests need root")
			require.True(t, strings.Contains(string(page), "\n"+command), command)
		}
		require.Equal(t, 2, used)
	}
}

// shellScript writes a shell script.
func shellScript(t *testing.T, dir, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755))
}

// TestActionStatus checks the verdict of each exit status, and that a command and formats reach ksnoop unchanged.
func TestActionStatus(t *testing.T) {
	a := readAction(t)
	for status, verdict := range map[int]string{0: "pass", 1: "fail", 2: "error", 4: "skip", 69: "error", 77: "error", 124: "timeout"} {
		j, bin := newJob(t), t.TempDir()
		j.path = bin + ":" + j.path
		shellScript(t, bin, "ksnoop", fmt.Sprintf("printf '<%%s>' \"$@\"\nexit %d", status))
		shellScript(t, bin, "id", "echo 0")
		printed, got := j.step(t, a.Runs.Steps[1], a, map[string]string{
			"probes": "my *.probes", "output": "ktap json=*.json", "command": `echo "$HOME" 'a  b'`})
		require.Equal(t, status, got)
		require.Equal(t, `<test><-o><ktap><-o><json=*.json><my *.probes><--><sh><-c><echo "$HOME" 'a  b'>`, printed)
		require.Equal(t, map[string]string{"verdict": verdict, "status": fmt.Sprint(status)}, j.outputs)
	}
}

// TestActionInputs checks that inputs that contradict each other are an error of the action, which then does not run ksnoop.
func TestActionInputs(t *testing.T) {
	a := readAction(t)
	for _, c := range []struct {
		with    map[string]string
		printed string
	}{
		{map[string]string{"run": "check", "command": "make test"}, "::error::command is for 'run: test': check runs nothing, so leave command out\n"},
		{map[string]string{"run": "tests"}, "::error::run is 'tests': give test or check\n"},
	} {
		j, bin := newJob(t), t.TempDir()
		j.path = bin + ":" + j.path
		shellScript(t, bin, "ksnoop", "echo ran")
		shellScript(t, bin, "id", "echo 0")
		c.with["probes"] = "files.probes"
		printed, status := j.step(t, a.Runs.Steps[1], a, c.with)
		require.Equal(t, 2, status)
		require.Equal(t, c.printed, printed)
		require.Equal(t, map[string]string{"verdict": "error", "status": "2"}, j.outputs)
	}
}

// hostProbes returns a probe file that every kernel with BTF can run. Its assertion counts the programs that any process
// executes meanwhile. There is at least one, as the command executes a program.
func hostProbes(condition string) string {
	return "ksnoop-probes 1\nsuite files\nrun sh -c true\nassert execs tp:sched_process_exec() " + condition + "\n"
}

// requireTracing skips a test where this machine does not let its user trace.
func requireTracing(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds everything")
	}
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	var has uint64
	_, caps, _ := strings.Cut(string(status), "\nCapEff:\t")
	_, err = fmt.Sscanf(caps, "%x", &has)
	require.NoError(t, err)
	const perfmon, bpf = 1 << 38, 1 << 39
	if os.Getuid() != 0 || has&(perfmon|bpf) != perfmon|bpf {
		t.Skip("only root with CAP_BPF and CAP_PERFMON may trace")
	}
	if !exists("/sys/kernel/btf/vmlinux") {
		t.Skip("the kernel of this machine has no BTF")
	}
}

// TestAction runs the action natively: it builds ksnoop, and then judges assertions, of which some hold and some do not.
func TestAction(t *testing.T) {
	requireTracing(t)
	t.Parallel()
	require.NoError(t, dependOnSources())
	a, j := readAction(t), newJob(t)
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(j.dir, name), []byte(text), 0o644))
	}
	write("green.probes", hostProbes("at-least 1"))
	write("red.probes", hostProbes("never"))
	write("wrong.probes", hostProbes("maybe"))
	write("bare.probes", strings.Replace(hostProbes("at-least 1"), "run sh -c true\n", "", 1))
	printed, status := j.step(t, a.Runs.Steps[0], a, map[string]string{"probes": "green.probes"})
	require.Zero(t, status, printed)
	require.Contains(t, printed, "ksnoop version ")
	for _, c := range []struct {
		with    map[string]string
		status  int
		verdict string
		printed string
	}{
		{map[string]string{"probes": "green.probes"}, 0, "pass", "### files: 2 pass"},
		{map[string]string{"probes": "red.probes", "output": "github junit=results.xml ktap=results.ktap"}, 1, "fail",
			"::error file=red.probes,line=4,title=files.execs::matched "},
		{map[string]string{"probes": "wrong.probes"}, 2, "error", "maybe"},
		{map[string]string{"probes": "bare.probes", "output": "ktap", "command": `[ "$WHO" = me ] && echo "$WHO"`}, 0, "pass", "me\nKTAP version 1\n"},
		{map[string]string{"probes": "red.probes", "run": "check", "output": ""}, 0, "pass", "ok"},
	} {
		j.env = []string{"WHO=me"}
		printed, status := j.step(t, a.Runs.Steps[1], a, c.with)
		require.Equal(t, c.status, status, printed)
		require.Equal(t, map[string]string{"verdict": c.verdict, "status": fmt.Sprint(c.status)}, j.outputs, printed)
		require.Contains(t, printed, c.printed)
	}
	for name, text := range map[string]string{"results.xml": "<failure message=\"matched ", "results.ktap": "not ok 2 files.execs # matched "} {
		result, err := os.ReadFile(filepath.Join(j.dir, name))
		require.NoError(t, err)
		require.Contains(t, string(result), text)
	}
}

// TestActionArchive installs a release's archive from a file and from a URL. It checks that an archive with another
// checksum, a URL without a checksum, and a machine with neither an archive nor Go are refused.
func TestActionArchive(t *testing.T) {
	if testing.Short() {
		t.Skip("builds everything")
	}
	t.Parallel()
	archive := releaseArchive(t)
	sum := fmt.Sprintf("%x", sha256.Sum256(archive))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(archive) }))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "ksnoop-1.tar.gz")
	require.NoError(t, os.WriteFile(file, archive, 0o644))
	a := readAction(t)
	for _, c := range []struct{ archive, sha256, want string }{
		{file, "", "ksnoop version "},
		{file, sum, "ksnoop version "},
		{server.URL + "/ksnoop-1.tar.gz", sum, "ksnoop version "},
		{file, strings.Repeat("0", 64), "::error::the archive has another SHA-256\n"},
		{server.URL + "/ksnoop-1.tar.gz", "", "::error::an archive from a URL needs sha256"},
		{"", "", "::error::there is no Go to build ksnoop with"},
	} {
		j := newJob(t)
		if c.archive == "" {
			j.path = t.TempDir()
			for _, name := range []string{"sh", "mkdir"} {
				path, err := exec.LookPath(name)
				require.NoError(t, err)
				require.NoError(t, os.Symlink(path, filepath.Join(j.path, name)))
			}
		}
		before := j.path
		printed, status := j.step(t, a.Runs.Steps[0], a, map[string]string{"archive": c.archive, "sha256": c.sha256})
		require.Contains(t, printed, c.want)
		require.Equal(t, strings.HasPrefix(c.want, "::"), status != 0, printed)
		if status == 0 {
			require.Equal(t, filepath.Join(j.temp, "ksnoop/bin")+":"+before, j.path)
		}
	}
}

// releaseArchive returns an archive of the binary with the layout of make dist.
func releaseArchive(t *testing.T) []byte {
	binary, err := os.ReadFile(staticBinary(t, vm.Arch(runtime.GOARCH)))
	require.NoError(t, err)
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	w := tar.NewWriter(compressed)
	require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "ksnoop-1-linux-amd64/bin/ksnoop", Mode: 0o755, Size: int64(len(binary))}))
	_, err = w.Write(binary)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, compressed.Close())
	return out.Bytes()
}
