package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/report"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/suite"
	"github.com/ksnoop/ksnoop/kallsyms"
	"github.com/ksnoop/ksnoop/runtime"
)

// dealt says of each thing in a probe file what it is counted by, or why it is
// not.
func dealt(t *testing.T, text string) (all []string, units []*testUnit) {
	s, err := suite.Parse("x.probes", "ksnoop-probes 1\nsuite x\n"+text)
	require.NoError(t, err)
	types, err := btf.LoadSpecFromReader(bytes.NewReader(kernelTypes(t)))
	require.NoError(t, err)
	features, err := featuresOf("6.12", types, compiler.AMD64)
	require.NoError(t, err)
	tester := &tester{suite: s, counted: everything(s)}
	tester.deal(&compiler.Target{Kernel: types, Module: noModule, Arch: compiler.AMD64, Features: features})
	for _, c := range tester.counted {
		what := c.name + ":"
		for _, side := range c.sides {
			what += fmt.Sprintf(" %s of %s", side.measure, side.trace().Target())
		}
		switch {
		case c.skip != "":
			what = c.name + ": skipped: " + c.skip
		case c.err != nil:
			what = c.name + ": error: " + sentence(c.err)
		}
		all = append(all, what)
	}
	return all, tester.units
}

func TestDeal(t *testing.T) {
	all, units := dealt(t, `
assert count   vfs_read(count > 5)             never
assert quick   vfs_read()                      p50 < 1ms min-samples 1
assert longest vfs_read()                      max < 1ms
assert moved   vfs_read(file->pos)             changed
assert pair    vfs_read() ~ vfs_open()         difference <= 1
assert path    -s vfs_read vfs_open            never
assert mine    vfs_read()                      never  scope task
assert either  any-of {nothing vfs_open}()     never
assert gone    nothing()                       never
assert glob    nothing_*()                     never
assert misfit  vfs_read(cuont)                 never
assert bad     vfs_read(file->pso)             changed
assert half    vfs_read() ~ nothing()          difference <= 1
metric calls   vfs_read()                      count
metric bytes   vfs_read(count)                 sum
evidence count vfs_read(count)                 last 3
`)
	require.Equal(t, []string{
		"count: calls of vfs_read",
		"quick: durations of vfs_read",
		"longest: durations of vfs_read",
		"moved: changes of vfs_read",
		"pair: calls of vfs_read calls of vfs_open",
		"path: calls of vfs_open",
		"mine: calls of vfs_read",
		"either: calls of vfs_open",
		"gone: skipped: there is no function nothing in this kernel",
		"glob: skipped: no function of this kernel matches 'nothing_*'; those of a module take its name: MODULE:nothing_*; tracepoints are tp:nothing_*",
		"misfit: error: vfs_read has no argument 'cuont'; did you mean 'count'?",
		"bad: error: struct file has no member 'pso'; did you mean 'pos'?",
		"half: skipped: there is no function nothing in this kernel",
		"calls: calls of vfs_read",
		"bytes: values of vfs_read",
		"count: events of vfs_read",
	}, all)
	// One for the whole system, one for the path, one for the command.
	require.Len(t, units, 3)
	require.True(t, units[0].evidence)
	require.Len(t, units[0].measures, 9)
	require.True(t, units[1].stack)
	require.Equal(t, suite.Task, units[2].scope)
	require.False(t, units[2].evidence)
}

// Sums are numbers of 64 bits as long as they fit.
func TestNumber64(t *testing.T) {
	huge := runtime.NewUint(math.MaxUint64).Add(runtime.NewUint(1))
	for want, n := range map[suite.Value]runtime.Int{
		{Bits: 7}: runtime.NewUint(7), {Bits: math.MaxUint64}: huge, {Bits: ^uint64(6), Signed: true}: runtime.NewInt(-7),
		{Bits: 1 << 63, Signed: true}: runtime.NewInt(math.MinInt64),
	} {
		require.Equal(t, want, number64Of(n), n.String())
	}
	require.Equal(t, suite.Value{Bits: 1 << 63, Signed: true}, number64Of(runtime.NewInt(math.MinInt64).Add(runtime.NewInt(-1))))
}

// Prometheus gets an edge for each power of two.
func TestHistogramSample(t *testing.T) {
	var h compiler.Histogram
	for _, v := range []uint64{0, 3, 17, 18, 300, 300, math.MaxUint64} {
		h.Add(v)
	}
	s := histogramSample(suite.Observed{Histogram: &h, Sum: suite.Value{Bits: 638}})
	require.Equal(t, 638.0, s.Sum)
	require.Equal(t, uint64(1), s.Beyond)
	require.Equal(t, []report.Bucket{{UpTo: 0, Count: 1}, {UpTo: 1}, {UpTo: 3, Count: 1}, {UpTo: 7}, {UpTo: 15}, {UpTo: 31, Count: 2}, {UpTo: 63}, {UpTo: 127}, {UpTo: 255}, {UpTo: 511, Count: 2}}, s.Buckets[:10])
	require.Empty(t, histogramSample(suite.Observed{}).Buckets)
}

func TestTestCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.probes")
	require.NoError(t, os.WriteFile(file, []byte("ksnoop-probes 1\nsuite x\nrun true\nassert abc vfs_read(count > 5) never\nmetric m vfs_read() count\n"), 0o644))
	for _, tc := range []struct {
		line   string
		status int
		want   string
	}{
		{"test --list " + file, 0, "  NAME  KIND    WHAT\n  run   run     run true status 0\n  abc   assert  assert abc vfs_read(count > 5) never\n  m     metric  metric m vfs_read() count\n"},
		{"test", exitUsage, "ksnoop: no probe file to test: name one, as in ksnoop test tcp.probes -- ./run.sh (ksnoop help test explains more)\n"},
		{"test a b", exitUsage, "ksnoop: test takes one probe file: as in ksnoop test tcp.probes -- ./run.sh\n"},
		{"test /nosuch/file", exitUsage, "ksnoop: read specs: open /nosuch/file: no such file or directory\n"},
		{"test --xfail abb " + file, exitUsage, "ksnoop: --xfail is \"abb\": " + file + " has no such assertion; did you mean 'abc'?\n"},
		{"test " + file + " -- ls", exitUsage, "ksnoop: a command follows --, and " + file + " has one in line 3: leave one of them out\n"},
		{"test -o nothing " + file, exitUsage, ""},
		{"test --attach nothing " + file, exitUsage, ""},
	} {
		var stdout, stderr strings.Builder
		status := run(append([]string{"ksnoop"}, strings.Fields(tc.line)...), strings.NewReader(""), &stdout, &stderr)
		require.Equal(t, tc.status, status, tc.line)
		if tc.want != "" {
			require.Equal(t, tc.want, stdout.String()+stderr.String())
		}
	}
}

// An error before there are results has a status that says whose fault it is.
func TestTestStatus(t *testing.T) {
	require.ErrorAs(t, withTestStatus(usagef("wrong")), &usageError{})
	var status statusError
	require.ErrorAs(t, withTestStatus(os.ErrPermission), &status)
	require.Equal(t, suite.ExitPermission, status.status)
	if runtime.ReadPrivileges().Refusal() == "" {
		require.ErrorAs(t, withTestStatus(errors.New("no BTF")), &status)
		require.Equal(t, suite.ExitUnavailable, status.status)
	}
}

// Of a function that is there as one changed copy alone, that is counted, if no
// argument is named.
func TestOnlyCopy(t *testing.T) {
	symbols, err := kallsyms.Read(strings.NewReader("ffffffff81000000 t gone.isra.0\nffffffff81000100 t two.isra.0\nffffffff81000200 t two.constprop.0\n"), nil)
	require.NoError(t, err)
	target := &compiler.Target{Symbols: symbols}
	for text, want := range map[string]string{
		"gone()": "gone.isra.0", "gone(return < 0) if $pid == 1": "gone.isra.0", "gone": "", "gone(x)": "", "gone() if x->y": "", "gone($arg1)": "", "two()": "", "other()": "",
	} {
		trace, _, err := spec.ParseIn(text, 0)
		require.NoError(t, err, text)
		got := ""
		if copied := onlyCopy([]*spec.Trace{trace}, target); copied != nil {
			got = copied.Func.Name
		}
		require.Equal(t, want, got, text)
	}
}

// The file that the help shows is one.
func TestHelpExample(t *testing.T) {
	_, text, ok := strings.Cut(testCommand().description, "\n\n")
	require.True(t, ok)
	text, _, _ = strings.Cut(text, "\n\n")
	_, err := suite.Parse("help", strings.ReplaceAll(text, "   ", ""))
	require.NoError(t, err)
}
