package probes

import (
	"errors"
	"fmt"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/suite"
	"github.com/ksnoop/ksnoop/runtime"
)

// Set is the probes of all files.
type Set struct {
	Probes []*Probe
}

// Attach attaches the metrics of probe files, in place of those of an earlier set, which
// may be nil. Lines that have not changed keep their counts. A probe that does not work
// has the reason in its Err; Attach returns an error if no new one can work.
func Attach(suites []*suite.Suite, earlier *Set, o *Options) (*Set, error) {
	set := &Set{}
	working := map[string]*Probe{}
	for _, p := range earlier.probes() {
		if p.session != nil {
			working[p.id] = p
		}
	}
	fresh := map[*Probe]*suite.Suite{}
	for _, s := range suites {
		for _, m := range s.Metrics {
			p := newProbe(s, m, o)
			if same := working[p.id]; same != nil {
				p = same
			} else {
				fresh[p] = s
			}
			set.Probes = append(set.Probes, p)
		}
	}
	return set, set.attach(fresh, o)
}

func (s *Set) probes() []*Probe {
	if s == nil {
		return nil
	}
	return s.Probes
}

// attach attaches the probes of a set that are new.
func (s *Set) attach(fresh map[*Probe]*suite.Suite, o *Options) error {
	if len(fresh) == 0 {
		return nil
	}
	release, err := runtime.Release()
	if err != nil {
		return err
	}
	var traces []*spec.Trace
	var types []string
	for p, of := range fresh {
		traces = append(traces, p.all()...)
		for _, r := range of.Requires {
			switch r.Kind {
			case suite.RequireFunc:
				if t, err := spec.Parse(r.Name); err == nil {
					traces = append(traces, t)
				}
			case suite.RequireBTF:
				types = append(types, r.Name)
			}
		}
	}
	k, err := runtime.OpenFor(traces, types, func(target *compiler.Target) bool {
		fit := true
		for p, of := range fresh {
			p.bind(of, target, release)
			fit = fit && p.Err == nil
		}
		return fit
	})
	if err != nil {
		return err
	}
	if refusal := runtime.ReadPrivileges().Refusal(); refusal != "" {
		return errors.New(refusal)
	}
	for _, p := range s.Probes { // in the order of the files
		if _, ok := fresh[p]; !ok || p.Err != nil {
			continue
		}
		p.Err = p.attach(k, o)
	}
	return nil
}

// Failed returns the errors of the probes that count nothing, or nil. It leaves out those
// for which this kernel has nothing to count, and those that had failed in the earlier set
// already. The earlier set may be nil.
func (s *Set) Failed(earlier *Set) error {
	known := map[string]bool{}
	for _, p := range earlier.probes() {
		known[p.id] = p.Err != nil
	}
	return s.errors(func(p *Probe) bool { return !p.Absent && !known[p.id] })
}

// Absent returns the reasons why this kernel has nothing to count for some probes, or nil.
func (s *Set) Absent() error { return s.errors(func(p *Probe) bool { return p.Absent }) }

func (s *Set) errors(wanted func(*Probe) bool) error {
	var errs []error
	for _, p := range s.Probes {
		if p.Err != nil && wanted(p) {
			errs = append(errs, fmt.Errorf("metric %s: %w", p.Name, p.Err))
		}
	}
	return errors.Join(errs...)
}

// Counting returns the number of probes that count.
func (s *Set) Counting() (n int) {
	for _, p := range s.Probes {
		if p.Err == nil {
			n++
		}
	}
	return n
}

// Close detaches all probes but those that another set has, too.
func (s *Set) Close(but *Set) error {
	kept := map[*Probe]bool{}
	for _, p := range but.probes() {
		kept[p] = true
	}
	var errs []error
	for _, p := range s.probes() {
		if !kept[p] {
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(errs...)
}
