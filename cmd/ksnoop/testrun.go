package main

import (
	"fmt"

	"github.com/klauspost/cpuid/v2"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/suite"
	"github.com/ksnoop/ksnoop/runtime"
)

// smallestRing is for units that write no records: the size that all kernels
// take.
const smallestRing = 4096

// A tester runs a suite once.
type tester struct {
	cli     *invocation
	suite   *suite.Suite
	job     *suite.Run // nil: the calls come from elsewhere
	command *command   // that runs it; nil as well
	cgroup  *ownCgroup // of the command; nil: it has none of its own
	bounds  bounds
	ready   *ready
	out     *reports
	attach  compiler.Kind
	ring    uint32
	machine suite.Machine

	kernel  *kernel
	counted []*counted
	units   []*testUnit
	exited  suite.Exited
	results []testResult
}

// newTester reads the command line and finds what can be missing, before
// anything is done in the kernel.
func newTester(c *invocation, s *suite.Suite) (_ *tester, err error) {
	t := &tester{cli: c, suite: s, counted: everything(s)}
	w, err := wishes(c, 1)
	if err != nil {
		return nil, err
	}
	t.attach = w.Attach
	pages, err := number(c, "pages", maxPages)
	if err != nil {
		return nil, err
	}
	if t.ring, err = ringBytes(uint32(pages)); err != nil {
		return nil, err
	}
	if t.bounds, err = readBounds(c); err != nil {
		return nil, err
	}
	given := len(c.behind) > 0 || s.Run != nil
	outside := t.bounds.duration > 0 || !given && (c.IsSet("ready-file") || c.IsSet("ready-fd"))
	if t.job, err = s.Command(c.behind, outside); err != nil {
		return nil, usageError{err}
	}
	if t.machine.Release, err = runtime.Release(); err != nil {
		return nil, err
	}
	t.machine.Emulated = cpuid.CPU.HypervisorVendorString == emulator
	if t.out, err = openReports(c.Strings("output"), ownFormat{}, c.stdout); err != nil {
		return nil, err
	}
	if t.ready, err = openReady(c); err == nil {
		err = t.openCommand()
	}
	if err != nil {
		t.out.discard()
	}
	return t, err
}

// emulator is what QEMU without hardware virtualization calls itself.
const emulator = "TCGTCGTCGTCG"

// openCommand finds the program, and makes the cgroup that it is to run in.
func (t *tester) openCommand() (err error) {
	var scopes [suite.Cgroup + 1]bool
	for _, c := range t.counted {
		scopes[c.scope] = true
	}
	if t.job == nil {
		if scopes[suite.Task] || scopes[suite.Cgroup] {
			return usagef("%s has assertions with the scope of the command, and there is none: write it behind --", t.suite.File)
		}
		return nil
	}
	t.command, err = findProgram(t.cli, t.job.Command)
	if err != nil {
		return err
	}
	t.command.ownGroup() // to end all of it if it takes too long
	// Results are what stdout is for.
	t.command.cmd.Stdout = t.command.cmd.Stderr
	if scopes[suite.Cgroup] {
		if t.cgroup, err = makeCgroup(); err != nil {
			return fmt.Errorf("make a cgroup for the command, which assertions with scope cgroup take: %w", err)
		}
		t.cgroup.hold(t.command.cmd)
	}
	return nil
}

// close frees what the test holds.
func (t *tester) close() {
	for _, u := range t.units {
		if u.session != nil {
			u.session.Close()
		}
	}
	t.ready.close()
	t.out.discard()
	if t.cgroup != nil {
		t.cgroup.remove()
	}
}

// run does everything up to the results.
func (t *tester) run() error {
	k, target, err := openKernelFor(t.traces(), t.types()...)
	if err != nil {
		return err
	}
	t.kernel = k
	if reason := unmet(t.suite.Requires, target, t.machine.Release); reason != "" {
		t.results = t.skipped(reason)
		return nil
	}
	if err := t.plan(target); err != nil {
		return err
	}
	if err := t.attachAll(); err != nil {
		return err
	}
	if err := t.work(); err != nil {
		return err
	}
	t.results, err = t.judge()
	return err
}

// types are the names of those that the file requires.
func (t *tester) types() (names []string) {
	for _, r := range t.suite.Requires {
		if r.Kind == suite.RequireBTF {
			names = append(names, r.Name)
		}
	}
	return names
}

// traces are all that the file names, for the symbols that are needed.
func (t *tester) traces() (all []*spec.Trace) {
	for _, c := range t.counted {
		for _, side := range c.sides {
			for _, s := range side.path {
				all = append(all, s.AnyOf...)
			}
		}
	}
	for _, r := range t.suite.Requires {
		if r.Kind == suite.RequireFunc {
			all = append(all, functionTrace(r.Name))
		}
	}
	return all
}
