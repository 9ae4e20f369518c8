package verdict

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/listing"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/suite"
	"github.com/ksnoop/ksnoop/runtime"
)

// attachAll loads and attaches every unit. It stores the errors of what cannot be
// loaded or attached with the assertion, metric or evidence concerned.
func (t *tester) attachAll() error {
	for _, u := range t.units {
		if err := t.load(u); err != nil {
			return err
		}
		session := u.session
		if session == nil {
			continue
		}
		if t.options.Attach == "" {
			session.Recompile = func() (*compiler.Unit, error) { return t.compileUnit(u) }
		}
		if u.scope == suite.Cgroup {
			if err := session.TraceIn(t.cgroup.dir); err != nil {
				return err
			}
		}
		session.Hold()
		if _, err := session.Attach(); err != nil {
			if err := t.blame(err); err != nil {
				return err
			}
		}
		u.unit = session.Unit()
		term.Say(t.streams.Err, session.Notes())
		if t.options.Verbose {
			fmt.Fprintf(t.streams.Err, "ksnoop: attached %d probes\n", len(u.unit.Probes()))
		}
		if u.evidence {
			t.collect(u)
		}
	}
	t.units = slices.DeleteFunc(t.units, func(u *testUnit) bool { return u.session == nil })
	return nil
}

// load loads a unit. If the verifier accepts nothing of it, it has no session.
func (t *tester) load(u *testUnit) error {
	session, err := runtime.Load(u.unit, t.kernel)
	var all *runtime.VerifierError
	switch {
	case errors.As(err, &all):
		return t.refuse(u, []*runtime.VerifierError{all})
	case err != nil:
		return err
	}
	u.session = session
	return t.refuse(u, session.Refused())
}

// refuse stores the verifier's refusals with the assertions, metrics and evidence
// concerned.
func (t *tester) refuse(u *testUnit, refused []*runtime.VerifierError) error {
	listing.WarnRefused(t.streams.Err, u.unit, refused, false)
	for _, e := range refused {
		if err := t.blame(e); err != nil {
			return err
		}
	}
	return nil
}

// blame stores each error with the assertion, metric or evidence concerned. It
// returns the others, which end the test.
func (t *tester) blame(err error) error {
	var left []error
	for _, e := range exit.Split(err) {
		blamed := false
		for _, p := range probesOf(e) {
			if c := t.countedBy(p.Asked); c != nil {
				c.err, blamed = e, true
			}
		}
		if !blamed {
			left = append(left, e)
		}
	}
	return errors.Join(left...)
}

// probesOf returns the probes that an error concerns.
func probesOf(err error) []*compiler.Probe {
	var place *runtime.AttachError
	var program *runtime.VerifierError
	switch {
	case errors.As(err, &place):
		return []*compiler.Probe{place.Probe}
	case errors.As(err, &program):
		return program.Probes
	}
	return nil
}

// countedBy returns the assertion, metric or evidence of a trace.
func (t *tester) countedBy(trace *spec.Trace) *counted {
	for _, c := range t.counted {
		for _, side := range c.sides {
			if slices.Contains(side.traces, trace) {
				return c
			}
		}
	}
	return nil
}
