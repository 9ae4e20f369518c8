// Package verdict runs a probe file and judges what was counted.
package verdict

import (
	"errors"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/report"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/run"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/suite"
	"github.com/ksnoop/ksnoop/runtime"
)

// Options selects the probe file, the command to run it with, and the outputs of the
// results.
type Options struct {
	File    string    // - is standard input
	In      io.Reader // standard input
	Command []string  // nil for that of the file, or none
	Own     run.Inherited
	Version string // version of ksnoop

	Bounds  run.Bounds
	Ready   run.ReadyOptions
	Attach  compiler.Kind
	Ring    uint32 // size of the ring buffers in bytes
	Keys    int    // keys that a table has room for, or 0 for the default
	Verbose bool

	List          bool // list the file without a test
	FailSkip      bool
	XFail         []string
	AllowEmulated bool
	Output        []string // FORMAT or FORMAT=FILE
	PromTextfile  string   // "" for no metrics
}

// Run runs a probe file.
func Run(o *Options, out *term.Streams) error {
	s, err := readSuite(o)
	if err != nil {
		return err
	}
	switch {
	case o.List && len(o.Output) > 0:
		return exit.Usagef("--list prints a table, and no results for -o: leave out one of them")
	case o.List:
		return listSuite(out.Out, s)
	}
	t, err := newTester(o, out, s)
	if err != nil {
		return err
	}
	defer t.close()
	if err := t.run(); err != nil {
		return withTestStatus(err)
	}
	return t.report()
}

// readSuite reads the probe file that the command line names.
func readSuite(o *Options) (*suite.Suite, error) {
	name := o.File
	text, err := target.ReadSpecs(name, o.In)
	if err != nil {
		return nil, err
	}
	if name == "-" {
		name = "standard input"
	}
	s, err := suite.Parse(name, text)
	if err != nil {
		return nil, err
	}
	for _, name := range o.XFail {
		near, ok := s.HasAssert(name)
		switch {
		case ok:
		case near != "":
			return nil, exit.Usagef("--xfail is %q: %s has no such assertion; did you mean '%s'?", name, s.File, near)
		default:
			return nil, exit.Usagef("--xfail is %q: %s has no such assertion", name, s.File)
		}
	}
	return s, nil
}

// withTestStatus gives an error that ends a test before there are results the exit
// status for its reason.
func withTestStatus(err error) error {
	var status exit.StatusError
	switch {
	case errors.As(err, &status), exit.IsUsage(err):
		return err
	case runtime.ReadPrivileges().Refusal() != "", errors.Is(err, os.ErrPermission):
		return exit.StatusError{Status: suite.ExitPermission, Reason: err}
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENOMEM): // the kernel can, but for limits
		return exit.StatusError{Status: suite.ExitFailed, Reason: err}
	default:
		return exit.StatusError{Status: suite.ExitUnavailable, Reason: err}
	}
}

// report prints the results and returns an error with the status that they mean.
func (t *tester) report() error {
	if t.options.FailSkip {
		failSkipped(t.results)
	}
	_ = t.out.Begin(report.Suite{Name: t.suite.Name, Results: len(t.results), Fields: t.about()})
	for _, r := range t.results {
		_ = t.out.Result(t.reported(r)) // End returns the error again
	}
	if err := errors.Join(t.out.End(), t.writeMetrics()); err != nil {
		return err
	}
	if status := suite.ExitStatus(judgedOf(t.results), false); status != 0 {
		return exit.StatusError{Status: status}
	}
	return nil
}

// judgedOf returns the results that the exit status is about: not those of metrics, unless
// one is an error, or there are only metrics. If all of these were skipped, nothing was done.
func judgedOf(results []testResult) (judged []suite.Result) {
	metrics := !slices.ContainsFunc(results, func(r testResult) bool { return !r.metric })
	for _, r := range results {
		if metrics || !r.metric || r.Status == suite.Error {
			judged = append(judged, r.Result)
		}
	}
	return judged
}

// failSkipped changes skipped results to failed ones, but for metrics, which cannot fail.
func failSkipped(results []testResult) {
	for i := range results {
		if r := &results[i]; r.Status == suite.Skip && !r.metric {
			r.Status, r.Text = suite.Fail, "not tested: "+r.Text
		}
	}
}
