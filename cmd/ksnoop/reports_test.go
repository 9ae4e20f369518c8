package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/report"
)

// Several formats at once: one to stdout, the others to files, of which those
// that are no streams appear when all is known.
func TestReports(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	t.Setenv(summaryVariable, file("summary"))
	require.NoError(t, os.WriteFile(file("summary"), []byte("before\n"), 0o644))
	require.NoError(t, os.WriteFile(file("old.tap"), bytes.Repeat([]byte("x\n"), 1000), 0o644))
	var stdout bytes.Buffer
	all, err := openReports([]string{"ktap", "junit=" + file("x.xml"), "tap=" + file("old.tap"), "github=" + file("gh"), "json=" + file("a=b")}, ownFormat{}, &stdout)
	require.NoError(t, err)
	require.NoError(t, all.Begin(report.Suite{Name: "s", Results: 1}))
	require.NoError(t, all.Result(report.Result{Name: "a", Status: report.Fail}))
	require.Equal(t, "KTAP version 1\n1..1\nnot ok 1 s.a\n", stdout.String())
	require.Equal(t, "TAP version 13\n1..1\nnot ok 1 s.a\n", read(t, file("old.tap")))
	require.NoFileExists(t, file("x.xml"))
	require.NoError(t, all.End())
	all.discard()
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

// What is no plain file is written to, not replaced.
func TestReportsToPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	got := make(chan []byte)
	go func() {
		text, _ := os.ReadFile(pipe)
		got <- text
	}()
	all, err := openReports([]string{"junit=" + pipe}, ownFormat{}, nil)
	require.NoError(t, err)
	require.NoError(t, all.Begin(report.Suite{Name: "s"}))
	require.NoError(t, all.End())
	require.Contains(t, string(<-got), "</testsuites>")
}

// Where results cannot be kept is found before there are any, and nothing is
// left behind.
func TestReportsErrors(t *testing.T) {
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
		_, err := openReports([]string{strings.ReplaceAll(tc.value, "DIR", dir)}, ownFormat{}, nil)
		require.Error(t, err)
		require.Equal(t, tc.want, strings.ReplaceAll(err.Error(), dir, "DIR"))
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestWriteMetrics(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.prom")
	metric := report.Metric{Name: "n", Type: report.Gauge, Samples: []report.Sample{{Value: 2}}}
	require.NoError(t, writeMetrics(name, []report.Metric{metric}))
	require.Equal(t, "# TYPE n gauge\nn 2\n", read(t, name))
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o644), info.Mode())
	require.EqualError(t, writeMetrics(name, []report.Metric{metric, metric}), "write the metrics: there are two metrics n")
	require.Equal(t, "# TYPE n gauge\nn 2\n", read(t, name), "the old one stays")
	require.ErrorContains(t, writeMetrics(name+"/x", nil), "write the metrics: open ")
	require.Equal(t, "prom-textfile", optionSet(promFlag).Lookup("prom-textfile").Name)
}

// Options that may be given several times, in every spelling, beside others.
func TestRepeated(t *testing.T) {
	for _, line := range []string{"-o a -oc=d --output e --output=f=g --btf h -f i x", "x -o a --btf h -f i -oc=d -o=e --output f=g"} {
		c := invoke(t, append([]string{"check"}, strings.Fields(line)...)...)
		require.Equal(t, []string{"a", "c=d", "e", "f=g"}, c.Strings("output"), line)
		require.Equal(t, []string{"h"}, c.Strings("btf"))
		require.Equal(t, []string{"i"}, c.Strings("file"))
	}
	c := invoke(t, strings.Fields("trace -o json vfs_read -f x --file=y -p 1 -p 2")...)
	require.Equal(t, []string{"x", "y"}, c.Strings("file"))
	require.Equal(t, "json", c.String("output"))
	require.Empty(t, c.Strings("output"))
	require.Equal(t, "2", c.String("pid"), "the last is valid")
}
