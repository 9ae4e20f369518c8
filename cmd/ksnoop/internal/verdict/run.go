package verdict

import (
	"fmt"
	"io"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/report"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/run"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/suite"
	"github.com/ksnoop/ksnoop/compiler/suite/bind"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/cgroup"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// smallestRing is the size of the ring buffer for units that write no records: all
// kernels accept it.
const smallestRing = 4096

// tester runs a suite once.
type tester struct {
	options *Options
	streams *term.Streams
	suite   *suite.Suite
	job     *suite.Run   // nil if other processes make the calls
	command *run.Command // the command of job, or nil
	cgroup  *ownCgroup   // of the command, or nil if it has none of its own
	ready   *run.Ready
	out     *report.Outputs
	metrics io.WriteCloser // the file for Prometheus, or nil
	machine suite.Machine

	bind    func([]*spec.Trace, *compiler.Target, resolve.Wishes) (*compiler.Plan, error) // resolve.All
	kernel  *runtime.Kernel
	target  *compiler.Target // kernel, as far as its types have been read
	counted []*counted
	units   []*testUnit
	exited  suite.Exited
	results []testResult

	containers  render.Containers // of cgroups that tables and evidence show
	interrupted *suite.Result     // the result if a signal came before the end of --for, or nil
}

// newTester opens everything that can be missing, before anything is done in the
// kernel.
func newTester(o *Options, s *term.Streams, file *suite.Suite) (_ *tester, err error) {
	t := &tester{options: o, streams: s, suite: file, counted: everything(file), bind: resolve.All, containers: cgroup.NewTable()}
	given := len(o.Command) > 0 || file.Run != nil
	if given && o.Bounds.Duration > 0 {
		return nil, exit.Usagef("--for ends a test of what others do, and this one runs a command: limit it in the file, as in run COMMAND timeout 10s")
	}
	outside := o.Bounds.Duration > 0 || !given && o.Ready != (run.ReadyOptions{})
	if t.job, err = file.Command(o.Command, outside); err != nil {
		return nil, exit.Misuse(err)
	}
	if t.machine.Release, err = runtime.Release(); err != nil {
		return nil, err
	}
	t.machine.Emulated = emulated()
	if err = t.openMetrics(); err != nil {
		return nil, err
	}
	if t.out, err = report.Open(o.Output, report.Format{}, s); err != nil {
		return nil, err
	}
	if err = t.onlyResults("--prom-textfile", o.PromTextfile); err == nil {
		err = t.onlyResults("--ready-file", o.Ready.File)
	}
	if err == nil && o.PromTextfile != "" && o.Ready.File != "" && report.SameFile(o.PromTextfile, o.Ready.File) {
		err = exit.Usagef("--prom-textfile and --ready-file both write %s: give each a file of its own", o.PromTextfile)
	}
	if err == nil {
		t.ready, err = run.OpenReady(o.Ready, s)
	}
	if err == nil {
		err = t.openCommand()
	}
	if err != nil {
		t.out.Discard()
	}
	return t, err
}

// onlyResults returns an error if the file that an option names is one of results.
func (t *tester) onlyResults(option, file string) error {
	if file == "" || !t.out.Writes(file) {
		return nil
	}
	return exit.Usagef("%s and --output both write %s: give each a file of its own", option, render.PlainName(file))
}

// openCommand finds the program, and makes the cgroup that it will run in.
func (t *tester) openCommand() (err error) {
	var scopes [suite.Cgroup + 1]bool
	for _, c := range t.counted {
		scopes[c.scope] = true
	}
	if t.job == nil {
		if scopes[suite.Task] || scopes[suite.Cgroup] {
			return exit.Usagef("%s has assertions with the scope of the command, and there is none: write it after --", t.suite.File)
		}
		return nil
	}
	t.command, err = run.FindProgram(t.job.Command, t.options.Own, t.streams)
	if err != nil {
		return err
	}
	t.command.OwnGroup() // to end all of it if it takes too long
	// Stdout is for results.
	t.command.Cmd.Stdout = t.command.Cmd.Stderr
	if scopes[suite.Cgroup] {
		if t.cgroup, err = makeCgroup(); err != nil {
			return withTestStatus(fmt.Errorf("make a cgroup for the command, which assertions with scope cgroup take: %w", err))
		}
		t.cgroup.hold(t.command.Cmd)
	}
	return nil
}

// close frees what the tester holds.
func (t *tester) close() {
	for _, u := range t.units {
		if u.session != nil {
			u.session.Close()
		}
	}
	t.ready.Close()
	t.out.Discard()
	if t.cgroup != nil {
		term.Say(t.streams.Err, t.cgroup.remove())
	}
}

// run does everything up to the results.
func (t *tester) run() error {
	var unmet string
	var misfit error
	k, err := runtime.OpenFor(t.traces(), t.types(), func(kernel *compiler.Target) (fit bool) {
		if unmet = bind.Unmet(t.suite.Requires, kernel, t.machine.Release); unmet != "" {
			return false
		}
		t.target = kernel
		fit, misfit = t.resolve()
		return fit
	})
	if err != nil {
		return err
	}
	if unmet != "" {
		t.results = t.skipped(unmet)
		return nil
	}
	if err := t.leaveOut(misfit); err != nil {
		return err
	}
	t.kernel = k
	if err := t.compile(); err != nil {
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

// types returns the names of the types that the file requires.
func (t *tester) types() (names []string) {
	for _, r := range t.suite.Requires {
		if r.Kind == suite.RequireBTF {
			names = append(names, r.Name)
		}
	}
	return names
}

// traces returns all traces of the file, to find the symbols that are needed.
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
			all = append(all, bind.FunctionTrace(r.Name))
		}
	}
	return all
}
