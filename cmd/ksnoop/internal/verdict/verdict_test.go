package verdict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/fixture"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/report"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/run"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/suite"
	"github.com/ksnoop/ksnoop/compiler/suite/bind"
	"github.com/ksnoop/ksnoop/runtime"
)

// dealt describes how a tester divides the entries of a probe file.
type dealt struct {
	entries []string // for each entry how it is counted, or why it is not
	units   []*testUnit
	bound   []int // numbers of traces that are bound together
}

// deal binds a probe file to the types of a kernel.
func deal(t *testing.T, text string, kind compiler.Kind) (all dealt, err error) {
	s, err := suite.Parse("x.probes", "ksnoop-probes 1\nsuite x\n"+text)
	require.NoError(t, err)
	types, err := btf.LoadSpecFromReader(bytes.NewReader(fixture.Types(t)))
	require.NoError(t, err)
	features := target.FeaturesOf("6.12", types, compiler.AMD64)
	kernel := &compiler.Target{Kernel: types, Module: target.NoModule, Arch: compiler.AMD64, Features: features}
	tester := &tester{options: &Options{Attach: kind}, suite: s, counted: everything(s), target: kernel}
	tester.bind = func(traces []*spec.Trace, kernel *compiler.Target, w resolve.Wishes) (*compiler.Plan, error) {
		all.bound = append(all.bound, len(traces))
		return resolve.All(traces, kernel, w)
	}
	_, misfit := tester.resolve()
	if err := tester.leaveOut(misfit); err != nil {
		return all, err
	}
	for _, c := range tester.counted {
		what := c.name + ":"
		for _, side := range c.sides {
			what += fmt.Sprintf(" %s of %s", side.measure, side.trace().Target())
		}
		switch {
		case c.skip != "":
			what = c.name + ": skipped: " + c.skip
		case c.err != nil:
			what = c.name + ": error: " + bind.Sentence(c.err)
		}
		all.entries = append(all.entries, what)
	}
	all.units = tester.units
	return all, nil
}

func TestDeal(t *testing.T) {
	all, err := deal(t, `
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
assert rows    vfs_read(max(count))            each max(count) <= 9223372036854775807
metric calls   vfs_read()                      count
metric bytes   vfs_read(count)                 sum
evidence count vfs_read(count)                 last 3
`, "")
	require.NoError(t, err)
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
		"glob: skipped: no function of this kernel matches 'nothing_*'; functions of a module need its name: MODULE:nothing_*; tracepoints are tp:nothing_*",
		"misfit: error: vfs_read has no argument 'cuont'; did you mean 'count'?",
		"bad: error: struct file has no member 'pso'; did you mean 'pos'?",
		"half: skipped: there is no function nothing in this kernel",
		"rows: error: 'max(count) <= 9223372036854775807' always holds: 'max(count)' is long and holds -9223372036854775808 to 9223372036854775807",
		"calls: calls of vfs_read",
		"bytes: values of vfs_read",
		"count: events of vfs_read",
	}, all.entries)
	// One unit for the whole system, one for the path, one for the command.
	units := all.units
	require.Len(t, units, 3)
	require.True(t, units[0].evidence)
	require.Len(t, units[0].measures, 9)
	require.True(t, units[1].chain)
	require.Equal(t, suite.Task, units[2].scope)
	require.False(t, units[2].evidence)
}

// TestBindOnce verifies that what fits the kernel is bound once, and that what does not
// fit is left out and the rest is bound once more.
func TestBindOnce(t *testing.T) {
	const fits = "assert a vfs_read() never\nassert b vfs_open() ~ vfs_read() difference <= 1\n"
	const chain = "assert c -s vfs_read vfs_open never\n"
	const misfits = "assert x vfs_read(cuont) never\nassert y vfs_open() ~ vfs_read(file->pso) difference <= 1\n"
	for _, tc := range []struct {
		text  string
		kind  compiler.Kind
		bound []int
		err   string
	}{
		{fits, "", []int{3}, ""},
		{fits + chain, "", []int{3, 2}, ""},
		{fits + misfits, "", []int{6, 1, 1, 3}, ""},
		{fits + misfits + chain, "", []int{6, 2, 1, 1, 3, 2}, ""},
		{fits + "assert c -s vfs_read vfs_open(none) never\n", "", []int{3, 2, 3}, ""}, // a chain is a unit
		// Each fits by itself.
		{fits + many("assert m%d vfs_read() never\n", 38), compiler.Fentry, nil, "a trampoline takes 38 programs, and there are 40 for this function"},
	} {
		all, err := deal(t, tc.text, tc.kind)
		if tc.err != "" {
			require.ErrorContains(t, err, tc.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, tc.bound, all.bound, tc.text)
	}
}

// many returns n lines, with their numbers.
func many(format string, n int) (text string) {
	for i := range n {
		text += fmt.Sprintf(format, i)
	}
	return text
}

// TestAverageOfEach verifies that averages of large numbers are compared as they are.
func TestAverageOfEach(t *testing.T) {
	const n, calls = 1<<53 + 1, 6 // no float64 is n
	table := &runtime.Table{
		Aggregates: []*compiler.Aggregate{{Name: "avg(x)", Kind: compiler.Avg}},
		Rows:       []runtime.Row{{Calls: calls, Cells: []runtime.Cell{{Number: runtime.NewInt(n).Times(calls)}}}},
	}
	for _, test := range []struct {
		op    spec.Op
		bound int64
		holds bool
	}{
		{spec.Le, n, true}, {spec.Gt, n, false}, {spec.Eq, n, true}, {spec.Gt, n - 1, true}, {spec.Lt, n + 1, true}, {spec.Gt, -n, true},
	} {
		c := &suite.Condition{Op: test.op, Row: &suite.RowCondition{Aggregate: "avg(x)", Bound: test.bound}}
		require.Equal(t, test.holds, len(breaking(table, c).Rows) == 0, "%v", test)
	}
}

// TestSums verifies that a sum beyond 64 bits is a number in JSON, with all its digits.
func TestSums(t *testing.T) {
	m := &suite.Metric{Kind: suite.Sum}
	r := m.Report(suite.Observed{Sum: "55340232221128656909"})
	shown := (&tester{suite: new(suite.Suite)}).reported(testResult{Result: r})
	require.Contains(t, shown.Fields, report.Field{Name: "sum", Value: json.RawMessage("55340232221128656909")})
	require.InEpsilon(t, 5.5e19, inexact("55340232221128656909"), 0.01)
}

// TestHistogramSample verifies that there is an edge for each power of two.
func TestHistogramSample(t *testing.T) {
	var h compiler.Histogram
	for _, v := range []uint64{0, 3, 17, 18, 300, 300, math.MaxUint64} {
		h.Add(v)
	}
	s := histogramSample(suite.Observed{Histogram: &h, Sum: "638"})
	require.Equal(t, 638.0, s.Sum)
	require.Equal(t, uint64(1), s.Beyond)
	require.Equal(t, []report.Bucket{{UpTo: 0, Count: 1}, {UpTo: 1}, {UpTo: 3, Count: 1}, {UpTo: 7}, {UpTo: 15}, {UpTo: 31, Count: 2}, {UpTo: 63}, {UpTo: 127}, {UpTo: 255}, {UpTo: 511, Count: 2}}, s.Buckets[:10])
	require.Empty(t, histogramSample(suite.Observed{}).Buckets)
	s = histogramSample(suite.Observed{Histogram: &h, Negative: &h, Sum: "-1"})
	require.Equal(t, []report.Bucket{{UpTo: -1, Count: 7}, {UpTo: 0, Count: 1}}, s.Buckets[:2])
	require.Equal(t, -1.0, s.Sum)
}

// TestTestStatus verifies that an error before there are results has the status for
// its cause.
func TestTestStatus(t *testing.T) {
	require.True(t, exit.IsUsage(withTestStatus(exit.Usagef("wrong"))))
	var status exit.StatusError
	require.ErrorAs(t, withTestStatus(os.ErrPermission), &status)
	require.Equal(t, suite.ExitPermission, status.Status)
	if runtime.ReadPrivileges().Refusal() == "" {
		require.ErrorAs(t, withTestStatus(errors.New("no BTF")), &status)
		require.Equal(t, suite.ExitUnavailable, status.Status)
		for _, limit := range []error{unix.EMFILE, unix.ENOMEM} {
			require.ErrorAs(t, withTestStatus(&runtime.LoadError{Err: limit}), &status)
			require.Equal(t, suite.ExitFailed, status.Status)
		}
	}
}

// TestSchemaOfVerdicts covers verdicts on all kinds of assertions, and all kinds of
// metrics, with everything observed or nothing.
func TestSchemaOfVerdicts(t *testing.T) {
	s, err := suite.Parse("x.probes", `ksnoop-probes 1
suite x
run true
assert never      f(return < 0)    never
assert quick      f()              p50 < 1ms  min-samples 1
assert longest    f()              max < 1ms
assert changed    f(a->b)          changed
assert balanced   f() ~ g()        difference <= 1
metric calls      f()              count
metric bytes      f(a)             sum
metric sizes      f(a)             histogram
`)
	require.NoError(t, err)
	var h compiler.Histogram
	h.Add(5)
	counts := suite.Counts{Called: 2, Matched: 1, Missed: 1, Unreadable: 1, Uncounted: true}
	seen := suite.Observed{
		Counts: counts, Other: counts, Changed: 1, Histogram: &h, Maximum: 5,
		Sum: "-1", First: &suite.Value{Bits: ^uint64(0), Signed: true},
	}
	tester := &tester{options: new(Options), suite: s, machine: suite.Machine{Release: "6.12", Emulated: true}}
	results := []testResult{{Result: s.Run.Judge(suite.Exited{Status: 3, Took: 1})}, {Result: s.Run.Judge(suite.Exited{TimedOut: true})}}
	for _, o := range []suite.Observed{seen, {}, {Skip: "there is none"}} {
		for _, a := range s.Asserts {
			results = append(results, testResult{Result: a.Judge(o)}, testResult{Result: a.Judge(o).ExpectFailure("why")})
		}
		for _, m := range s.Metrics {
			results = append(results, testResult{Result: m.Report(o)})
		}
	}
	var text strings.Builder
	w, err := report.New("json", &text, nil)
	require.NoError(t, err)
	require.NoError(t, w.Begin(report.Suite{Name: s.Name, Results: len(results), Fields: tester.about()}))
	for _, r := range results {
		require.NoError(t, w.Result(tester.reported(r)))
	}
	require.NoError(t, w.End())
	require.NoError(t, fixture.Schema(t, "results").Lines(text.String()))
	for _, status := range []string{"pass", "fail", "skip", "xfail", "error", "timeout"} {
		require.Contains(t, text.String(), `"status":"`+status+`"`)
	}
}

// TestFailSkipped verifies that a metric stays skipped, as it cannot fail.
func TestFailSkipped(t *testing.T) {
	results := []testResult{{Result: suite.Result{Status: suite.Skip, Text: "why"}}, {Result: suite.Result{Status: suite.Skip}, metric: true}, {Result: suite.Result{Status: suite.Pass}}}
	failSkipped(results)
	require.Equal(t, suite.Fail, results[0].Status)
	require.Equal(t, "not tested: why", results[0].Text)
	require.Equal(t, suite.Skip, results[1].Status)
	require.Equal(t, suite.Pass, results[2].Status)
}

// TestStatusOfMetrics verifies that a file of metrics alone has not passed if none of them
// was measured, and the command did not run.
func TestStatusOfMetrics(t *testing.T) {
	measured, skipped, failed := testResult{metric: true}, testResult{Result: suite.Result{Status: suite.Skip}, metric: true}, testResult{Result: suite.Result{Status: suite.Error}, metric: true}
	command := testResult{Result: suite.Result{Name: suite.RunName}}
	for _, test := range []struct {
		results []testResult
		status  int
	}{
		{[]testResult{skipped, skipped}, suite.ExitSkipped},
		{[]testResult{skipped, measured}, suite.ExitPassed},
		{[]testResult{skipped, failed}, suite.ExitFailed},
		{[]testResult{command, skipped}, suite.ExitPassed},
		{[]testResult{command, failed}, suite.ExitFailed},
	} {
		require.Equal(t, test.status, suite.ExitStatus(judgedOf(test.results), false), test)
	}
}

// TestSignalBeforeCommand verifies that the command of a test does not start after a signal.
func TestSignalBeforeCommand(t *testing.T) {
	command, err := run.FindProgram([]string{"sleep", "60"}, run.Inherit(), &term.Streams{})
	require.NoError(t, err)
	stop := &testStop{over: make(chan struct{})}
	require.NoError(t, stop.Stop())
	require.ErrorIs(t, (&tester{command: command, job: &suite.Run{}}).runCommand(stop), runtime.ErrStopped)
	require.Nil(t, command.Cmd.Process)
}

// TestSettle verifies that a signal that ends the time after the command is not hidden, and that
// there is no such time without a command.
func TestSettle(t *testing.T) {
	over := make(chan struct{})
	close(over)
	for _, test := range []struct {
		command   *run.Command
		settle    time.Duration
		over      chan struct{}
		unsettled bool
	}{
		{new(run.Command), time.Hour, over, true},
		{new(run.Command), time.Nanosecond, make(chan struct{}), false},
		{new(run.Command), 0, over, false},
		{nil, time.Hour, make(chan struct{}), false},
	} {
		tester := &tester{command: test.command, suite: &suite.Suite{Settle: test.settle}}
		tester.settle(test.over)
		require.Equal(t, test.unsettled, tester.exited.Unsettled)
	}
}

// TestInterrupted verifies that a test of some time has a result that is not ok if a signal has
// ended it before, and none if not, or if a signal is what ends it.
func TestInterrupted(t *testing.T) {
	over := make(chan struct{})
	close(over)
	for _, test := range []struct {
		duration time.Duration
		over     chan struct{}
		text     string
	}{
		{time.Hour, over, "a signal ended the test after 0.0s, and it is to last 1h"},
		{time.Nanosecond, make(chan struct{}), ""},
		{0, over, ""},
	} {
		tester := &tester{suite: new(suite.Suite), options: &Options{Bounds: run.Bounds{Duration: test.duration}}}
		tester.waitOutside(test.over)
		results, err := tester.judge()
		require.NoError(t, err)
		if test.text == "" {
			require.Empty(t, results)
			continue
		}
		require.Equal(t, test.text, results[0].Text)
		require.Equal(t, suite.ExitFailed, suite.ExitStatus(judgedOf(results), false))
	}
}

// TestReadyStatus verifies that a test that cannot be announced has not found a kernel that
// cannot do it.
func TestReadyStatus(t *testing.T) {
	dir := t.TempDir() + "/gone"
	require.NoError(t, os.Mkdir(dir, 0o700))
	ready, err := run.OpenReady(run.ReadyOptions{File: dir + "/ready"}, &term.Streams{})
	require.NoError(t, err)
	require.NoError(t, os.Remove(dir))
	var status exit.StatusError
	require.ErrorAs(t, withTestStatus((&tester{options: &Options{}, streams: &term.Streams{}, ready: ready}).work()), &status)
	require.Equal(t, exit.Failure, status.Status)
	require.ErrorContains(t, status, "create the ready file: write "+dir+"/ready: no such file or directory")
}
