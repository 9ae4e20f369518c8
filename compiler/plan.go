package compiler

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// Wishes is what a user asks for besides the specs.
type Wishes struct {
	Attach Kind // the kind to attach by, which names the entry side; "": the best
	Stack  bool // the traces are a call chain, outermost first
	// Measures are the traces whose calls are measured; those of the others
	// are events. A stack is measured as its last trace is, which can be
	// [Calls] alone.
	Measures map[*spec.Trace]Measure
}

// Plan is a set of specs bound to a kernel.
type Plan struct {
	Probes []*Probe
	// LeftOut counts the functions of a glob that are not traced, by reason.
	LeftOut map[string]int
	// Notes are sentences for the user on what may surprise.
	Notes []string
}

// ResolveAll binds all traces and reports every one that does not fit the
// kernel.
func ResolveAll(traces []*spec.Trace, target *Target, w Wishes) (*Plan, error) {
	plan := &Plan{LeftOut: map[string]int{}}
	var errs []error
	for i, t := range traces {
		m := w.Measures[t]
		if w.Stack && i < len(traces)-1 {
			m = NoMeasure
		}
		errs = append(errs, located(plan.add(t, target, w, m), t))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if w.Stack {
		if err := plan.chain(); err != nil {
			return nil, err
		}
	}
	stacks, comm := findStacks(target.Kernel), findComm(target)
	functions := map[string]crowd{}
	for _, p := range plan.Probes {
		p.Stacks, p.Comm = stacks, comm
		c := functions[p.Func.Symbol]
		c.programs += p.sides()
		if p.returnSide() {
			c.returns++
		}
		c.caller = c.caller || p.Caller
		c.blind = target.Arch.BlindReturns
		functions[p.Func.Symbol] = c
	}
	decided := plan.Probes[:0]
	for _, p := range plan.Probes {
		crowd := functions[p.Func.Symbol]
		crowd.functions = len(functions)
		switch err := p.decide(target.Features, w.Attach, crowd); {
		case err == nil:
			decided = append(decided, p)
		case p.OfGlob:
			plan.leaveOut(p.Func.Name, err.Error())
		default:
			errs = append(errs, located(err, p.Trace))
		}
	}
	plan.Probes = decided
	if len(decided) == 0 && len(errs) == 0 {
		errs = append(errs, fmt.Errorf("none of the functions can be traced: %s", commonest(plan.LeftOut)))
	}
	return plan, errors.Join(errs...)
}

// leaveOut counts a function of a glob that cannot be traced.
func (plan *Plan) leaveOut(function, reason string) {
	plan.LeftOut[strings.ReplaceAll(reason, function, "it")]++
}

// add binds a trace, or all the functions that its glob means.
func (plan *Plan) add(t *spec.Trace, target *Target, w Wishes, m Measure) error {
	if w.Stack && t.Probe != nil {
		return spec.Errorf(t.Text, t.Func.At, "a stack is made of specs, and this is a kprobe_events line").
			WithHint("write '%s'", t.Symbol())
	}
	if spec.IsGlob(t.Func.Name) {
		if w.Stack {
			return spec.Errorf(t.Text, t.Func.At, "a stack is made of single functions, and '%s' means many", t.Func.Name)
		}
		return plan.addGlob(t, target, w, m)
	}
	p, err := bindProbe(t, target, w, m)
	if err != nil {
		return err
	}
	p.Asked = t
	plan.Probes = append(plan.Probes, p)
	plan.Notes = append(plan.Notes, p.Func.notes()...)
	return nil
}

// located gives an error about a trace the file that the trace is from.
func located(err error, t *spec.Trace) error {
	var refusal *spec.Error
	if errors.As(err, &refusal) {
		refusal.From = t.From
	}
	return err
}
