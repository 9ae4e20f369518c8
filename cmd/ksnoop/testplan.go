package main

import (
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/suite"
	"github.com/ksnoop/ksnoop/runtime"
)

// A counted is something of a probe file that is traced: an assertion, a metric
// or evidence.
type counted struct {
	name  string
	sides []*countedSide // two of an assertion with ~
	scope suite.Scope
	last  int       // of evidence; else 0
	shown *evidence // what was read of it; nil: it is none, or not traced
	skip  string    // why it is not traced
	err   error     // why that could not be
}

// A countedSide is a spec, or a stack.
type countedSide struct {
	path    []*suite.Spec
	measure compiler.Measure // NoMeasure: evidence
	traces  []*spec.Trace    // those of the path that this kernel has; the last is counted
	unit    *testUnit
}

// counted is what is measured of the last function of the path.
func (s *countedSide) trace() *spec.Trace { return s.traces[len(s.traces)-1] }

// everything lists what a suite has traced.
func everything(s *suite.Suite) (all []*counted) {
	for _, a := range s.Asserts {
		sides := []*countedSide{{path: a.Path, measure: measureOf(a.Kind)}}
		if a.Other != nil {
			sides = append(sides, &countedSide{path: []*suite.Spec{a.Other}, measure: compiler.Calls})
		}
		all = append(all, &counted{name: a.Name, sides: sides, scope: a.Scope})
	}
	for _, m := range s.Metrics {
		measure := compiler.Values
		if m.Kind == suite.Calls {
			measure = compiler.Calls
		}
		all = append(all, &counted{name: m.Name, sides: []*countedSide{{path: m.Path, measure: measure}}, scope: m.Scope})
	}
	for _, e := range s.Evidence {
		all = append(all, &counted{name: e.Name, sides: []*countedSide{{path: e.Path}}, scope: scopeOf(s, e.Name), last: e.Last})
	}
	return all
}

func measureOf(k suite.Kind) compiler.Measure {
	switch k {
	case suite.Percentile, suite.Max:
		return compiler.Durations
	case suite.Changed, suite.Unchanged:
		return compiler.Changes
	}
	return compiler.Calls
}

// scopeOf is that of the assertion or metric of a name.
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

// A testUnit is what one session traces: a stack by itself, and everything else
// of one scope together.
type testUnit struct {
	scope    suite.Scope
	stack    bool
	evidence bool // records are written
	traces   []*spec.Trace
	measures map[*spec.Trace]compiler.Measure
	unit     *compiler.Unit
	session  *runtime.Session
	counts   unitCounts
	shows    map[*spec.Trace]*evidence // that its records are
	shown    chan error                // when all of them are read; nil: there are none
}

// plan compiles everything that this kernel has.
func (t *tester) plan(target *compiler.Target) error {
	t.deal(target)
	for _, u := range t.units {
		if err := t.compile(u, target); err != nil {
			return err
		}
	}
	return nil
}

// deal deals what is traced out to units. What does not fit the kernel by itself
// is left out, with the reason.
func (t *tester) deal(target *compiler.Target) {
	shared := map[suite.Scope]*testUnit{}
	for _, c := range t.counted {
		c.choose(target)
		for _, side := range c.sides {
			if c.skip != "" || c.err != nil {
				break
			}
			_, c.err = compiler.ResolveAll(side.traces, target, t.wishes(side))
		}
		if c.skip != "" || c.err != nil {
			continue
		}
		for _, side := range c.sides {
			stack := len(side.traces) > 1
			u := shared[c.scope]
			if u == nil || stack {
				u = &testUnit{scope: c.scope, stack: stack, measures: map[*spec.Trace]compiler.Measure{}}
				t.units = append(t.units, u)
				if !stack {
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
}

func (t *tester) wishes(side *countedSide) compiler.Wishes {
	w := compiler.Wishes{Attach: t.attach, Stack: len(side.traces) > 1}
	if side.measure != compiler.NoMeasure {
		w.Measures = map[*spec.Trace]compiler.Measure{side.trace(): side.measure}
	}
	return w
}

// compile compiles a unit.
func (t *tester) compile(u *testUnit, target *compiler.Target) error {
	plan, err := compiler.ResolveAll(u.traces, target, compiler.Wishes{Attach: t.attach, Stack: u.stack, Measures: u.measures})
	if err != nil {
		return err
	}
	say(t.cli.stderr, plan.Notes)
	opts := compiler.Options{Arch: target.Arch, Features: target.Features, Cgroup: u.scope == suite.Cgroup, RingBytes: t.ring}
	if !u.evidence {
		opts.RingBytes = smallestRing
	}
	if u.scope == suite.Task {
		if opts.Tree, err = compiler.FindTasks(target.Kernel); err != nil {
			return err
		}
	}
	if err := t.kernel.findProcesses(&opts); err != nil {
		return err
	}
	u.unit, err = compiler.Compile(plan.Probes, opts)
	return err
}
