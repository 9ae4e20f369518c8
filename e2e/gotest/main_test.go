//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asGotest makes the binary of the tests run main.
const asGotest = "GOTEST_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asGotest) != "" {
		main()
	}
	os.Exit(m.Run())
}

// module writes a module with one package, whose test functions are given, and
// returns its directory.
func module(t *testing.T, tests string) string {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module example.com/tiny\n\ngo 1.24\n",
		"a_test.go": "package tiny\n\nimport (\n\t\"os\"\n\t\"testing\"\n\t\"time\"\n)\n\nvar _, _ = os.Args, time.Second\n\n" + tests,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	return dir
}

// gotest returns a command that runs gotest in dir, with a temporary directory
// of its own.
func gotest(t *testing.T, dir string, args ...string) (cmd *exec.Cmd, tmp string) {
	tmp = t.TempDir()
	cmd = exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), asGotest+"=1", "GOFLAGS=-mod=mod", "GOPROXY=off", "TMPDIR="+tmp)
	return cmd, tmp
}

// logDirs returns the directories of logs in tmp.
func logDirs(t *testing.T, tmp string) []string {
	dirs, err := filepath.Glob(filepath.Join(tmp, "ksnoop-test-*"))
	require.NoError(t, err)
	return dirs
}

func TestFailingRun(t *testing.T) {
	dir := module(t, "func TestGood(t *testing.T) {}\n\nfunc TestBad(t *testing.T) { t.Run(\"x\", func(t *testing.T) { t.Fatal(\"not good\") }) }\n")
	cmd, tmp := gotest(t, dir, "-count=1", ".")
	out, err := cmd.Output()
	exit := &exec.ExitError{}
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 1, exit.ExitCode())
	logs := logDirs(t, tmp)
	require.Len(t, logs, 1)
	first, rest, _ := strings.Cut(string(out), "\n")
	require.Regexp(t, `^FAIL\texample.com/tiny\t\d+\.\d+s$`, first)
	require.Equal(t, `--- example.com/tiny TestBad/x
    a_test.go:13: not good
log: `+logs[0]+`/TestBad-x.log
again: go test example.com/tiny -run '^TestBad$/^x$'
FAIL: 1 test failed; logs in `+logs[0]+"\n", rest)
	require.FileExists(t, filepath.Join(logs[0], "example.com-tiny.log"))
	require.FileExists(t, filepath.Join(logs[0], "TestBad-x.log"))
}

func TestPassingRun(t *testing.T) {
	dir := module(t, "func TestGood(t *testing.T) { t.Log(\"nothing\") }\n")
	cmd, tmp := gotest(t, ".", "-C", dir, "-count=1", ".")
	out, err := cmd.Output()
	require.NoError(t, err)
	require.Regexp(t, `^ok  \texample.com/tiny\t\d+\.\d+s\n$`, string(out))
	require.Empty(t, logDirs(t, tmp))
}

// TestEmptyRun verifies that a run without any test does not pass: a name may be written
// wrong. Other packages may have none, and benchmarks are enough.
func TestEmptyRun(t *testing.T) {
	dir := module(t, "func TestGood(t *testing.T) { t.Run(\"x\", func(t *testing.T) {}) }\n\nfunc BenchmarkGood(b *testing.B) {}\n")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "other"), 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "other", "b_test.go"), []byte("package other\n\nimport \"testing\"\n\nfunc TestOther(*testing.T) {}\n"), 0o666))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "untested"), 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "untested", "c.go"), []byte("package untested\n"), 0o666))
	for _, tc := range []struct {
		args  string
		empty bool
	}{
		{"-run TestBetter ./...", true},
		{"-run TestGood/y .", true},
		{"-skip Good|Other ./...", true},
		{"-run TestOther ./...", false},
		{"-run TestGood/x ./...", false},
		{"-run ^$ -bench Good -benchtime 1x .", false},
		{"-list Better ./...", false},
		{"./untested", false},
	} {
		cmd, _ := gotest(t, dir, strings.Fields(tc.args)...)
		out, err := cmd.Output()
		require.Equal(t, tc.empty, strings.HasSuffix(string(out), "\nFAIL: no test was run, as none has such a name\n"), "%s: %s", tc.args, out)
		if exit := (&exec.ExitError{}); tc.empty {
			require.ErrorAs(t, err, &exit)
			require.Equal(t, 1, exit.ExitCode())
		} else {
			require.NoError(t, err, "%s: %s", tc.args, out)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, tc := range []struct {
		args        []string
		out, stderr string
	}{
		{[]string{"-logs"}, "", "gotest: -logs needs a directory: gotest [-logs DIR] ARGS\n"},
		{[]string{"-logs="}, "", "gotest: -logs needs a directory that has a name\n"},
		{[]string{"-timeout", "soon"}, "FAIL: go test ended with status 2\n", "invalid value \"soon\" for flag -timeout: parse error\n"},
	} {
		cmd, tmp := gotest(t, ".", tc.args...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		exit := &exec.ExitError{}
		require.ErrorAs(t, err, &exit)
		require.Equal(t, usageStatus, exit.ExitCode())
		require.Equal(t, tc.out, string(out))
		require.True(t, strings.HasPrefix(stderr.String(), tc.stderr), stderr.String())
		require.Empty(t, logDirs(t, tmp))
	}
}

// TestSignals verifies that a signal ends go test and the tests, and that the report is
// printed.
func TestSignals(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		dir := module(t, "func TestSlow(t *testing.T) {\n\tos.WriteFile(\"started\", nil, 0o666)\n\ttime.Sleep(time.Hour)\n}\n")
		logs := t.TempDir()
		cmd, _ := gotest(t, dir, "-logs", logs, "-count=1", ".")
		var out bytes.Buffer
		cmd.Stdout = &out
		require.NoError(t, cmd.Start())
		require.Eventually(t, func() bool {
			_, err := os.Stat(filepath.Join(dir, "started"))
			return err == nil
		}, time.Minute, 20*time.Millisecond)
		require.NoError(t, cmd.Process.Signal(s))
		exit := &exec.ExitError{}
		require.ErrorAs(t, cmd.Wait(), &exit)
		require.Equal(t, 1, exit.ExitCode())
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		require.Contains(t, lines, "--- example.com/tiny TestSlow")
		require.Equal(t, "FAIL: 1 test failed; logs in "+logs, lines[len(lines)-1])
	}
}
