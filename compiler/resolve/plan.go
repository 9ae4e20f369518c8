package resolve

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// Wishes holds the user's options other than the specs.
type Wishes struct {
	Attach  compiler.Kind // one of ForcedKinds to attach with, named by its entry side; "" for the best
	Chain   bool          // whether the traces are a call chain, outermost first
	Objects int           // number of objects to watch, for a trace that finds objects; 0 means 1
	// Measures has the traces whose calls are measured; calls of the others are
	// events. The measure of a chain is that of its last trace, which can only
	// be [compiler.Calls].
	Measures map[*spec.Trace]compiler.Measure
	// Rows has comparisons that each row of a trace's table will be judged by: those of
	// an aggregate with a number. They must be neither always nor never true.
	Rows map[*spec.Trace]*spec.Item
}

// TraceError is the error of a trace that does not fit the kernel, with the text of Err.
type TraceError struct {
	Trace *spec.Trace
	Err   error
}

func (e *TraceError) Error() string { return e.Err.Error() }

func (e *TraceError) Unwrap() error { return e.Err }

// All binds all traces to a target and decides how to trace them. If any do not fit the
// target, or each other, the plan is nil. The error then joins a [*TraceError] for each
// that does not fit the target, with a [*spec.Error] in it if the spec is to blame, or it
// is about all traces together. If all fit but functions of some cannot be attached, as
// with the kind that [Wishes] asks for, All returns the plan of the others. The error then
// joins a [*TraceError] for each of these, with a [*KindError] or a [*spec.Error] in it, and
// for each glob none of whose functions can be attached.
func All(traces []*spec.Trace, target *compiler.Target, w Wishes) (*compiler.Plan, error) {
	if kinds := ForcedKinds(); w.Attach != "" && !slices.Contains(kinds, w.Attach) {
		return nil, fmt.Errorf("attach kind %s cannot be asked for: only %v can", w.Attach, kinds)
	}
	if target.Arch == nil {
		return nil, errors.New("the target has no architecture: set its Arch, which ArchOf finds by the types")
	}
	plan := &compiler.Plan{LeftOut: map[string]int{}}
	var errs []error
	for i, t := range traces {
		m := w.Measures[t]
		if w.Chain && i < len(traces)-1 {
			m = compiler.NoMeasure
		}
		err := addTrace(plan, t, target, w, m)
		if row := w.Rows[t]; row != nil && err == nil {
			err = judgeable(plan, t, row)
		}
		if err != nil {
			errs = append(errs, &TraceError{t, t.Locate(err)})
		}
	}
	if !w.Chain { // a chain has no iterators at all
		errs = append(errs, checkMixed(traces))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if w.Chain {
		if err := joinChain(plan); err != nil {
			return nil, err
		}
	}
	return decideAll(plan, target, w.Attach, errs)
}

// decideAll decides how to trace what a plan has bound. It leaves out functions of
// globs that cannot be traced, and joins the errors of the others to errs.
func decideAll(plan *compiler.Plan, target *compiler.Target, attach compiler.Kind, errs []error) (*compiler.Plan, error) {
	stacks, comm := findStacks(target.Kernel), FindComm(target)
	functions := map[string]programCounts{}
	for _, p := range plan.Probes {
		p.Arch, p.Features, p.Stacks, p.Comm = target.Arch, target.Features, stacks, comm
		c := functions[p.Func.Symbol]
		c.programs += countSides(p)
		if p.ReturnSide() {
			c.returns++
		}
		c.caller = c.caller || p.Caller
		functions[p.Func.Symbol] = c
	}
	decided := plan.Probes[:0]
	var globs []*spec.Trace // of which functions are left out
	reasons := map[*spec.Trace]map[string]int{}
	for _, p := range plan.Probes {
		counts := functions[p.Func.Symbol]
		counts.functions = len(functions)
		switch err := decide(p, target.Features, attach, counts); {
		case err == nil:
			decided = append(decided, p)
			noteMixedSigns(plan, p)
		case p.Follow != nil && p.OfGlob:
			plan.Unfollowed = append(plan.Unfollowed, err.Error())
		case p.OfGlob:
			if reasons[p.Asked] == nil {
				globs = append(globs, p.Asked)
				reasons[p.Asked] = map[string]int{}
			}
			reasons[p.Asked][reasonOf(err)]++
		default:
			errs = append(errs, &TraceError{p.Asked, p.Trace.Locate(err)})
		}
	}
	plan.Probes = decided
	for _, t := range globs {
		errs = append(errs, leaveOut(plan, t, reasons[t]))
	}
	return plan, errors.Join(errs...)
}

// leaveOut counts the functions of a glob that cannot be attached, or returns an error if
// these are all that the glob has in the plan.
func leaveOut(plan *compiler.Plan, t *spec.Trace, reasons map[string]int) error {
	if !slices.ContainsFunc(plan.Probes, func(p *compiler.Probe) bool { return p.Asked == t }) {
		err := t.Errorf(t.Func.At, "none of the functions that fit '%s' can be traced", t.Func.Name).WithHint("%s", commonest(reasons))
		return &TraceError{t, t.Locate(err)}
	}
	for reason, n := range reasons {
		plan.LeftOut[reason] += n
	}
	return nil
}

// reasonOf returns what is wrong with one of many functions, without its name.
func reasonOf(err error) string {
	var refused *spec.Error
	var unattachable *KindError
	switch {
	case errors.As(err, &refused):
		return refused.Reason()
	case errors.As(err, &unattachable):
		return fmt.Sprintf("attach %s to it: %s", unattachable.Kind, unattachable.Why)
	}
	return err.Error()
}

// addTrace binds a trace, or all the functions that its glob matches.
func addTrace(plan *compiler.Plan, t *spec.Trace, target *compiler.Target, w Wishes, m compiler.Measure) error {
	if err := notInSpan(t); err != nil {
		return err
	}
	if w.Chain && t.Iterator {
		return t.Errorf(t.Func.At, "a chain is made of functions, and %s is an iterator", t.Func.Name)
	}
	if w.Chain && t.Line != nil {
		return t.Errorf(t.Func.At, "a chain is made of specs, and this is a kprobe_events line").
			WithHint("write '%s'", t.Symbol())
	}
	if all := t.Aggregates(); w.Chain && len(all) > 0 {
		return t.Errorf(all[0].At, "the calls of a chain are shown one by one, and %s() counts calls", all[0].Name.Name).
			WithHint("trace the function without the chain")
	}
	if t.Ending != nil {
		return addSpan(plan, t, target, w, m)
	}
	if t.Watch {
		return addWatch(plan, t, target, w.Objects)
	}
	if spec.IsGlob(t.Func.Name) {
		if w.Chain {
			return t.Errorf(t.Func.At, "a chain is made of single functions, and '%s' means many", t.Func.Name)
		}
		return addGlob(plan, t, target, w, m)
	}
	p, err := bindProbe(t, target, w, m)
	if err != nil {
		return err
	}
	p.Asked = t
	plan.Probes = append(plan.Probes, p)
	plan.Notes = append(plan.Notes, p.Func.Notes()...)
	return nil
}
