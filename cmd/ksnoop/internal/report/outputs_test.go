package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
)

// TestOutputs covers several formats at once: one to stdout, the others to files,
// which are written at the end unless they are streams.
func TestOutputs(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	t.Setenv(summaryVariable, file("summary"))
	require.NoError(t, os.WriteFile(file("summary"), []byte("before\n"), 0o644))
	require.NoError(t, os.WriteFile(file("old.tap"), bytes.Repeat([]byte("x\n"), 1000), 0o644))
	var stdout bytes.Buffer
	all, err := Open([]string{"ktap", "junit=" + file("x.xml"), "tap=" + file("old.tap"), "github=" + file("gh"), "json=" + file("a=b")}, Format{}, &term.Streams{Out: &stdout})
	require.NoError(t, err)
	require.NoError(t, all.Begin(Suite{Name: "s", Results: 1}))
	require.NoError(t, all.Result(Result{Name: "a", Status: Fail}))
	require.Equal(t, "KTAP version 1\n1..1\nnot ok 1 s.a\n", stdout.String())
	require.Equal(t, "TAP version 13\n1..1\nnot ok 1 s.a\n", read(t, file("old.tap")))
	require.NoFileExists(t, file("x.xml"))
	require.NoError(t, all.End())
	all.Discard()
	require.Contains(t, read(t, file("x.xml")), "<failure ")
	require.Equal(t, "::error title=s.a::fail\n", read(t, file("gh")))
	require.Contains(t, read(t, file("a=b")), `"type":"summary"`)
	require.Equal(t, "before\n### s: 1 fail\n", read(t, file("summary"))[:len("before\n### s: 1 fail\n")])
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 5)
}

func read(t testing.TB, name string) string {
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}

// TestOutputsToPipe verifies that a file that is not regular is written to, not
// replaced.
func TestOutputsToPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	got := make(chan []byte)
	go func() {
		text, _ := os.ReadFile(pipe)
		got <- text
	}()
	all, err := Open([]string{"junit=" + pipe}, Format{}, &term.Streams{})
	require.NoError(t, err)
	require.NoError(t, all.Begin(Suite{Name: "s"}))
	require.NoError(t, all.End())
	require.Contains(t, string(<-got), "</testsuites>")
}

// TestOutputsErrors verifies that outputs that cannot be written are found before
// there are results, and that no files are left behind.
func TestOutputsErrors(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(summaryVariable, dir)
	for _, tc := range []struct{ value, want string }{
		{"junit=DIR/none/x", "write the results: create DIR/none/x in its directory: no such file or directory"},
		{"ktap=DIR/none/x", "write the results: open DIR/none/x: no such file or directory"},
		{"tap=DIR", "write the results: open DIR: is a directory"},
		{"github", "open the file that $GITHUB_STEP_SUMMARY names: open DIR: is a directory"},
		{"xml", `--output is "xml": it must be ktap, tap, junit, json or github`},
		{"table", `--output is "table": it must be ktap, tap, junit, json or github`},
	} {
		_, err := Open([]string{strings.ReplaceAll(tc.value, "DIR", dir)}, Format{}, &term.Streams{})
		require.Error(t, err)
		require.Equal(t, tc.want, strings.ReplaceAll(err.Error(), dir, "DIR"))
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	_, err = Open([]string{"tap=" + dir + "/x", "json=" + dir + "/./x"}, Format{}, &term.Streams{})
	require.ErrorContains(t, err, "/./x twice: give each format a file of its own")
	_, err = Open([]string{"tap=/dev/null", "json=/dev/null"}, Format{}, &term.Streams{})
	require.NoError(t, err)
}

// TestWrongOutputsKeep verifies that earlier results stay if a later --output is wrong.
func TestWrongOutputsKeep(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("old", []byte("earlier results\n"), 0o600))
	for _, wrong := range []string{"xml", "tap=", "tap=./old", "junit=none/x"} {
		_, err := Open([]string{"json=old", wrong}, Format{}, &term.Streams{})
		require.Error(t, err, wrong)
		require.Equal(t, "earlier results\n", read(t, "old"), wrong)
	}
	all, err := Open([]string{"json=old", "tap=/dev/null"}, Format{}, &term.Streams{})
	require.NoError(t, err)
	all.Discard()
	require.Empty(t, read(t, "old"))
}

// TestOneFile lists names of one file, which takes one format, and names of two.
func TestOneFile(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv(summaryVariable, "")
	require.NoError(t, os.Mkdir("dir", 0o700))
	require.NoError(t, os.WriteFile("old", nil, 0o600))
	require.NoError(t, os.Link("old", "hard"))
	for link, target := range map[string]string{"soft": "old", "linked": "dir"} {
		require.NoError(t, os.Symlink(target, link))
	}
	here, err := os.Getwd()
	require.NoError(t, err)
	for _, tc := range []struct {
		a, b string
		same bool
	}{
		{"json=new", "tap=" + here + "/new", true},
		{"junit=" + here + "/never", "junit=never", true},
		{"junit=dir/never", "junit=linked/never", true},
		{"junit=later", "tap=" + here + "/later", true},
		{"junit=old", "tap=soft", true},
		{"json=soft", "junit=" + here + "/old", true},
		{"json=old", "tap=hard", true},
		{"github=old", "tap=./dir/../old", true},
		{"json=old", "tap=new", false},
		{"junit=never", "junit=dir/never", false},
	} {
		all, err := Open([]string{tc.a, tc.b}, Format{}, &term.Streams{})
		if !tc.same {
			require.NoError(t, err, tc)
			all.Discard()
			continue
		}
		require.ErrorContains(t, err, " twice: give each format a file of its own", tc)
		require.True(t, exit.IsUsage(err))
	}
}

// TestStdoutIsFile verifies that a file that stdout leads to takes no second format, under
// whatever name, that a file that stderr leads to takes none, and that a device may take several.
func TestStdoutIsFile(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv(summaryVariable, "")
	out, err := os.Create("out")
	require.NoError(t, err)
	defer out.Close()
	require.NoError(t, os.Symlink("out", "soft"))
	streams := &term.Streams{Out: term.NewPlain(term.NewStdout(out))}
	for _, name := range []string{"out", "soft"} {
		for _, values := range [][]string{{"ktap", "junit=" + name}, {"junit=" + name, "ktap"}, {"tap=" + name, "json"}} {
			_, err = Open(values, Format{}, streams)
			require.ErrorContains(t, err, "--output writes ", values)
			require.ErrorContains(t, err, " twice", values)
			require.True(t, exit.IsUsage(err))
		}
	}
	all, err := Open([]string{"tap"}, Format{}, streams)
	require.NoError(t, err)
	require.True(t, all.Writes("soft"))
	require.False(t, all.Writes("other"))
	for _, values := range [][]string{{"junit=out"}, {"ktap", "junit=other"}} {
		all, err = Open(values, Format{}, streams)
		require.NoError(t, err, values)
		all.Discard()
	}
	for _, to := range []*term.Streams{{Err: term.NewPlain(out)}, {Out: out, Err: out}} {
		_, err = Open([]string{"junit=soft"}, Format{}, to)
		require.EqualError(t, err, "--output would write to soft, where stderr goes: name another file")
		require.True(t, exit.IsUsage(err))
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer null.Close()
	_, err = Open([]string{"tap", "json=/dev/null"}, Format{}, &term.Streams{Out: null})
	require.NoError(t, err)
}

func TestWriteMetrics(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a.prom")
	metric := Metric{Name: "n", Type: Gauge, Samples: []Sample{{Value: 2}}}
	open := func(name string) io.WriteCloser {
		f, err := OpenMetrics(name, nil)
		require.NoError(t, err)
		return f
	}
	require.NoError(t, WriteMetrics(open(name), []Metric{metric}))
	require.Equal(t, "# TYPE n gauge\nn 2\n", read(t, name))
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o644), info.Mode())
	require.EqualError(t, WriteMetrics(open(name), []Metric{metric, metric}), "write the metrics: n and n would both be n in Prometheus: rename one of them")
	require.Equal(t, "# TYPE n gauge\nn 2\n", read(t, name), "the old one stays")
	require.NoError(t, os.Mkdir(dir+"/gone", 0o700))
	f := open(dir + "/gone/x")
	require.NoError(t, os.Remove(dir+"/gone"))
	require.EqualError(t, WriteMetrics(f, nil), "write the metrics: write "+dir+"/gone/x: no such file or directory")
	require.EqualError(t, WriteMetrics(open("/dev/full"), []Metric{metric}), "write the metrics: write /dev/full: no space left on device")
}

// TestWholeFileKeepsNode verifies that files that are written as a whole replace neither a
// pipe nor a link.
func TestWholeFileKeepsNode(t *testing.T) {
	metrics := func(name string) error {
		f, err := OpenMetrics(name, nil)
		if err != nil {
			return err
		}
		return WriteMetrics(f, []Metric{{Name: "n", Type: Gauge, Samples: []Sample{{Value: 2}}}})
	}
	results := func(name string) error {
		all, err := Open([]string{"junit=" + name}, Format{}, &term.Streams{})
		if err != nil {
			return err
		}
		return errors.Join(all.Begin(Suite{Name: "s"}), all.End())
	}
	for end, write := range map[string]func(name string) error{"n 2\n": metrics, "</testsuites>\n": results} {
		dir := t.TempDir()
		pipe := filepath.Join(dir, "pipe")
		require.NoError(t, syscall.Mkfifo(pipe, 0o600))
		reader, err := os.OpenFile(pipe, os.O_RDWR, 0)
		require.NoError(t, err)
		defer reader.Close()
		fd := fmt.Sprintf("/proc/self/fd/%d", reader.Fd())
		require.NoError(t, os.WriteFile(dir+"/regular", nil, 0o600))
		for link, target := range map[string]string{"to-regular": "regular", "dangling": "new", "to-pipe": "pipe", "stdout": fd} {
			require.NoError(t, os.Symlink(target, filepath.Join(dir, link)))
		}
		for name, reached := range map[string]string{"to-regular": "regular", "dangling": "new", "to-pipe": "", "stdout": "", "pipe": ""} {
			before, err := os.Lstat(filepath.Join(dir, name))
			require.NoError(t, err)
			require.NoError(t, write(filepath.Join(dir, name)), name)
			after, err := os.Lstat(filepath.Join(dir, name))
			require.NoError(t, err)
			require.Equal(t, before.Mode().Type(), after.Mode().Type(), name)
			text := make([]byte, 1<<10)
			if reached != "" {
				text = []byte(read(t, filepath.Join(dir, reached)))
			} else {
				n, err := reader.Read(text)
				require.NoError(t, err)
				text = text[:n]
			}
			require.True(t, strings.HasSuffix(string(text), end), "%s: %q", name, text)
		}
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, left, 7, "no file is left beside them")
	}
}

// TestUnwritableOnce verifies that an output that cannot be written has one error, however
// much is written to it, and that the others have all results.
func TestUnwritableOnce(t *testing.T) {
	dir := t.TempDir()
	var stdout bytes.Buffer
	require.NoError(t, os.Mkdir(dir+"/gone", 0o700))
	all, err := Open([]string{"ktap", "json=/dev/full", "junit=" + dir + "/gone/x"}, Format{}, &term.Streams{Out: &stdout})
	require.NoError(t, err)
	require.NoError(t, os.Remove(dir+"/gone"))
	_ = all.Begin(Suite{Name: "s", Results: 2})
	for _, name := range []string{"a", "b"} {
		_ = all.Result(Result{Name: name})
	}
	require.EqualError(t, all.End(), "write the results: write /dev/full: no space left on device\n"+
		"write the results: write "+dir+"/gone/x: no such file or directory")
	require.Contains(t, stdout.String(), "ok 2 s.b\n")
}

// TestOpenMetrics verifies that metrics that cannot be written are found before there
// are numbers, and that no file is left behind.
func TestOpenMetrics(t *testing.T) {
	dir := t.TempDir()
	metric := Metric{Name: "n", Type: Gauge}
	openErr := func(name string, metrics ...Metric) error {
		_, err := OpenMetrics(name, metrics)
		return err
	}
	require.NoError(t, openErr(dir+"/a.prom", metric))
	require.EqualError(t, openErr(dir+"/none/a.prom"), "write the metrics: create "+dir+"/none/a.prom in its directory: no such file or directory")
	for _, err := range []error{openErr(dir), openErr(dir+"/a.prom", metric, metric)} {
		require.True(t, exit.IsUsage(err), err)
	}
	require.EqualError(t, openErr(dir), dir+" is a directory: name a file in it for the metrics")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}
