package verdict

import (
	"errors"
	"slices"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/codegen"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/suite"
	"github.com/ksnoop/ksnoop/compiler/suite/bind"
	"github.com/ksnoop/ksnoop/runtime"
)

// counted is an entry of a probe file that is traced: an assertion, a metric or
// evidence.
type counted struct {
	name  string
	sides []*countedSide // an assertion with ~ has two
	scope suite.Scope
	last  int       // number of events of evidence, else 0
	shown *evidence // the evidence that was read, or nil if this is not evidence or is not traced
	skip  string    // why it is not traced
	err   error     // why tracing it failed
}

// countedSide is a spec, or a chain.
type countedSide struct {
	path    []*suite.Spec
	measure compiler.Measure // NoMeasure for evidence; what a spec with aggregates counts is a table in any case
	row     *spec.Item       // the comparison that each row of the table is judged by, or nil
	traces  []*spec.Trace    // functions of the path that this kernel has; the last one is counted
	unit    *testUnit
}

// trace returns the last function of the path, which is measured.
func (s *countedSide) trace() *spec.Trace { return s.traces[len(s.traces)-1] }

// everything returns all entries of a suite that are traced.
func everything(s *suite.Suite) (all []*counted) {
	for _, a := range s.Asserts {
		sides := []*countedSide{{path: a.Path, measure: a.Kind.Measure()}}
		if a.Row != nil {
			sides[0].row = a.Row.Item
		}
		if a.Other != nil {
			sides = append(sides, &countedSide{path: []*suite.Spec{a.Other}, measure: compiler.Calls})
		}
		all = append(all, &counted{name: a.Name, sides: sides, scope: a.Scope})
	}
	for _, m := range s.Metrics {
		all = append(all, &counted{name: m.Name, sides: []*countedSide{{path: m.Path, measure: m.Kind.Measure()}}, scope: m.Scope})
	}
	for _, e := range s.Evidence {
		all = append(all, &counted{name: e.Name, sides: []*countedSide{{path: e.Path}}, scope: scopeOf(s, e.Name), last: e.Last})
	}
	return all
}

// scopeOf returns the scope of the assertion or metric with a name.
func scopeOf(s *suite.Suite, name string) suite.Scope {
	for _, a := range s.Asserts {
		if a.Name == name {
			return a.Scope
		}
	}
	for _, m := range s.Metrics {
		if m.Name == name {
			return m.Scope
		}
	}
	return suite.System
}

// testUnit holds the traces of one session: one chain, or all other traces of one
// scope.
type testUnit struct {
	scope    suite.Scope
	chain    bool
	evidence bool // whether records are written
	traces   []*spec.Trace
	measures map[*spec.Trace]compiler.Measure
	rows     map[*spec.Trace]*spec.Item
	plan     *compiler.Plan
	misfit   error // why there is no plan
	unit     *compiler.Unit
	session  *runtime.Session
	counts   unitCounts
	shows    map[*spec.Trace]*evidence // evidence that its records belong to
	shown    chan error                // receives the result once all records are read; nil if none are written
}

// resolve binds everything that the kernel has, and reports whether that is all. The
// error is that of entries that do not fit the kernel.
func (t *tester) resolve() (fit bool, err error) {
	for _, c := range t.counted {
		c.choose(t.target)
	}
	err = t.resolveUnits()
	return err == nil && !slices.ContainsFunc(t.counted, (*counted).leftOut), err
}

// leaveOut leaves out the entries that an error of resolve is about, with the reason,
// and binds the rest. It returns an error if each entry fits by itself.
func (t *tester) leaveOut(misfit error) error {
	for misfit != nil {
		if !t.findMisfits() {
			return misfit
		}
		misfit = t.resolveUnits() // what depends on the attach kind is only known once all else fits
	}
	return nil
}

// findMisfits stores the error of each entry that does not fit the kernel, and reports
// whether there is one.
func (t *tester) findMisfits() (found bool) {
	for _, c := range t.counted {
		for _, side := range c.sides {
			switch {
			case c.leftOut() || !side.unit.refuses(side):
			case side.unit.chain:
				c.err = side.unit.misfit
			default:
				_, c.err = t.bind(side.traces, t.target, t.wishes(side))
			}
			found = found || c.err != nil
		}
	}
	return found
}

// refuses reports whether the error of binding a unit is about a side, or does not tell
// which one it is about.
func (u *testUnit) refuses(side *countedSide) bool {
	told := false
	for _, err := range exit.Split(u.misfit) {
		var of *resolve.TraceError
		if errors.As(err, &of) {
			if told = true; slices.Contains(side.traces, of.Trace) {
				return true
			}
		}
	}
	return u.misfit != nil && !told
}

// resolveUnits distributes the entries over units and binds these.
func (t *tester) resolveUnits() error {
	t.deal()
	var errs []error
	for _, u := range t.units {
		u.plan, u.misfit = t.bind(u.traces, t.target, resolve.Wishes{Attach: t.options.Attach, Chain: u.chain, Measures: u.measures, Rows: u.rows})
		errs = append(errs, u.misfit)
	}
	return errors.Join(errs...)
}

// leftOut reports whether an entry is not traced.
func (c *counted) leftOut() bool { return c.skip != "" || c.err != nil }

// deal distributes the entries over units.
func (t *tester) deal() {
	t.units = nil
	shared := map[suite.Scope]*testUnit{}
	for _, c := range t.counted {
		if c.leftOut() {
			continue
		}
		for _, side := range c.sides {
			chain := len(side.traces) > 1
			u := shared[c.scope]
			if u == nil || chain {
				u = &testUnit{scope: c.scope, chain: chain, measures: map[*spec.Trace]compiler.Measure{}, rows: map[*spec.Trace]*spec.Item{}}
				t.units = append(t.units, u)
				if !chain {
					shared[c.scope] = u
				}
			}
			u.add(side)
		}
	}
}

func (u *testUnit) add(side *countedSide) {
	side.unit = u
	u.traces = append(u.traces, side.traces...)
	if side.measure == compiler.NoMeasure {
		u.evidence = true
		return
	}
	u.measures[side.trace()] = side.measure
	u.rows[side.trace()] = side.row
}

func (t *tester) wishes(side *countedSide) resolve.Wishes {
	w := resolve.Wishes{Attach: t.options.Attach, Chain: len(side.traces) > 1}
	if side.measure != compiler.NoMeasure {
		w.Measures = map[*spec.Trace]compiler.Measure{side.trace(): side.measure}
		w.Rows = map[*spec.Trace]*spec.Item{side.trace(): side.row}
	}
	return w
}

// compile compiles what is bound.
func (t *tester) compile() (err error) {
	for _, u := range t.units {
		term.Say(t.streams.Err, u.plan.Notes)
		if u.unit, err = t.compileUnit(u); err != nil {
			return err
		}
	}
	return nil
}

func (t *tester) compileUnit(u *testUnit) (unit *compiler.Unit, err error) {
	opts := compiler.Options{Cgroup: u.scope == suite.Cgroup, RingBytes: t.options.Ring, Keys: t.options.Keys}
	if !u.evidence {
		opts.RingBytes = smallestRing
	}
	if u.scope == suite.Task {
		if opts.Tree, err = resolve.FindTasks(t.target.Kernel); err != nil {
			return nil, err
		}
	}
	if err := t.kernel.FindProcesses(&opts); err != nil {
		return nil, err
	}
	return codegen.Compile(u.plan.Probes, opts)
}

// choose selects the functions that the kernel has.
func (c *counted) choose(kernel *compiler.Target) {
	c.skip, c.err = "", nil
	for _, side := range c.sides {
		side.traces = nil
		for _, s := range side.path {
			t, err := bind.Choose(s.AnyOf, kernel)
			if err != nil && c.skip == "" {
				c.skip = bind.Sentence(err)
			}
			side.traces = append(side.traces, t)
		}
	}
}
