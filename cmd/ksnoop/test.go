package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/report"
	"github.com/ksnoop/ksnoop/compiler/suite"
	"github.com/ksnoop/ksnoop/runtime"
)

func testCommand() *subcommand {
	return &subcommand{
		name:     "test",
		usage:    "run a command and say whether the kernel did what a probe file expects",
		operands: "FILE [-- COMMAND [ARGUMENT...]]",
		description: `The file says what to count, and what the counts must be:

   ksnoop-probes 1
   suite  reads
   assert no-errors  vfs_read(return < 0)  never
   assert some-open  do_sys_openat2()      at-least 1

   ksnoop test FILE -- ls

The status is 0 if all of it is so, 1 if not, 2 for a wrong file, 4 if everything was skipped, 69 if this kernel cannot
do it, 77 without the permission, and 124 if the command takes too long.`,
		flags: []flags{timeFlags, reportsFlag(ownFormat{}), verdictFlags, promFlag, evidenceFlags},
		run:   test,
	}
}

// verdictFlags is what the verdict depends on.
func verdictFlags(f *pflag.FlagSet) {
	f.Bool("list", false, "say what the file has, and end")
	f.Bool("fail-skip", false, "fail if something is skipped")
	f.StringArray("xfail", nil, "expect assertion `NAME` to fail; may be given several times")
	f.Bool("allow-emulated", false, "judge durations although the CPU is emulated")
}

// evidenceFlags is how the evidence is gathered.
func evidenceFlags(f *pflag.FlagSet) {
	attachFlag(f)
	f.StringP("pages", "P", "", "buffer evidence in `N` pages for each CPU, a power of two")
	verboseFlag(f)
}

// test runs a probe file.
func test(c *invocation) error {
	s, err := readSuite(c)
	if err != nil {
		return err
	}
	if c.Bool("list") {
		listSuite(c.stdout, s)
		return nil
	}
	t, err := newTester(c, s)
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
func readSuite(c *invocation) (*suite.Suite, error) {
	if len(c.operands) != 1 {
		return nil, usagef("test takes one probe file: as in ksnoop test tcp.probes -- ./run.sh")
	}
	name := c.operands[0]
	text, err := readSpecs(name, c.stdin)
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
	for _, name := range c.Strings("xfail") {
		near, ok := s.HasAssert(name)
		switch {
		case ok:
		case near != "":
			return nil, usagef("--xfail is %q: %s has no such assertion; did you mean '%s'?", name, s.File, near)
		default:
			return nil, usagef("--xfail is %q: %s has no such assertion", name, s.File)
		}
	}
	return s, nil
}

// withTestStatus gives an error that ends a test before there are results the
// status that says why.
func withTestStatus(err error) error {
	var status statusError
	switch {
	case errors.As(err, &status), isUsage(err):
		return err
	case runtime.ReadPrivileges().Refusal() != "", errors.Is(err, os.ErrPermission):
		return statusError{suite.ExitPermission, err}
	default:
		return statusError{suite.ExitUnavailable, err}
	}
}

// report prints the results and has the status that they mean.
func (t *tester) report() error {
	if t.cli.Bool("fail-skip") {
		failSkipped(t.results)
	}
	err := t.out.Begin(report.Suite{Name: t.suite.Name, Results: len(t.results), Fields: t.about()})
	for _, r := range t.results {
		err = errors.Join(err, t.out.Result(t.reported(r)))
	}
	err = errors.Join(err, t.out.End(), t.writeMetrics())
	if err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	var judged []suite.Result
	for _, r := range t.results {
		if !r.metric {
			judged = append(judged, r.Result)
		}
	}
	if status := suite.ExitStatus(judged, false); status != 0 {
		return statusError{status: status}
	}
	return nil
}

// failSkipped makes what was skipped fail.
func failSkipped(results []testResult) {
	for i := range results {
		if r := &results[i]; r.Status == suite.Skip {
			r.Status, r.Text = suite.Fail, "not tested: "+r.Text
		}
	}
}
