package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/suite"
	"github.com/ksnoop/ksnoop/runtime"
)

// attachAll loads and attaches every unit. What cannot be attached is remembered
// with what wants it.
func (t *tester) attachAll() error {
	for _, u := range t.units {
		session, err := runtime.Load(u.unit, t.kernel.Kernel)
		if err != nil {
			return err
		}
		u.session = session
		if u.scope == suite.Cgroup {
			if err := session.TraceIn(t.cgroup.dir); err != nil {
				return err
			}
		}
		if _, err := session.Attach(); err != nil {
			if err := t.blame(err); err != nil {
				return err
			}
		}
		if t.cli.Bool("verbose") {
			fmt.Fprintf(t.cli.stderr, "ksnoop: attached %d probes\n", len(u.unit.Probes()))
		}
		if u.evidence {
			t.collect(u)
		}
	}
	return nil
}

// blame gives each error of an attachment to what it is the end of; what is left
// is the end of the test.
func (t *tester) blame(err error) error {
	var left []error
	for _, e := range split(err) {
		var refused *runtime.AttachError
		c := (*counted)(nil)
		if errors.As(e, &refused) {
			c = t.countedBy(refused.Probe.Asked)
		}
		if c == nil {
			left = append(left, e)
			continue
		}
		c.err = e
	}
	return errors.Join(left...)
}

// countedBy is what a trace belongs to.
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
