package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
)

// parse reads all specs of a command line, those in files first, and reports
// every one that is wrong.
func parse(c *invocation) ([]*spec.Trace, error) {
	traces, err := parseFiles(c)
	errs := []error{err}
	for _, text := range c.operands {
		t, err := kprobe.ParseAny(text)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		traces = append(traces, t)
	}
	if traces == nil && errors.Join(errs...) == nil {
		errs = append(errs, usagef("there is nothing in %s: each line is empty, a comment or taken back", strings.Join(c.Strings("file"), ", ")))
	}
	errs = append(errs, addConditions(c, traces))
	return traces, errors.Join(errs...)
}

// wishes reads what the command line says about how to trace so many traces.
func wishes(c *invocation, traces int) (compiler.Wishes, error) {
	// As with the classic ksnoop, a stack of one function is no stack.
	w := compiler.Wishes{Stack: c.Bool("stack") && traces > 1, Attach: compiler.Kind(c.String("attach"))}
	if !c.IsSet("attach") || slices.Contains(compiler.ForcedKinds(), w.Attach) {
		return w, nil
	}
	var kinds []string
	for _, k := range compiler.ForcedKinds() {
		kinds = append(kinds, string(k))
	}
	return w, unknownName("--attach", string(w.Attach), kinds)
}

// resolve binds all traces and says what may surprise.
func resolve(c *invocation, traces []*spec.Trace, target *compiler.Target, w compiler.Wishes) (*compiler.Plan, error) {
	plan, err := compiler.ResolveAll(traces, target, w)
	switch {
	case err == nil:
		describePlan(c.stderr, traces, plan)
	case plan != nil && w.Attach != "": // the specs fit, but --attach does not
		err = usageError{err}
	case plan == nil:
		err = errors.Join(err, meantCommand(c, traces, target))
	}
	return plan, err
}

// meantCommand is a hint for what is no function of the kernel but nearly a
// command; nil: it is none.
func meantCommand(c *invocation, traces []*spec.Trace, target *compiler.Target) error {
	if len(c.Strings("file")) > 0 {
		return nil
	}
	name := c.operands[0]
	near, ok := spec.Nearest(name, commandNames())
	if !ok {
		return nil
	}
	if _, err := compiler.FindFunction(traces[0], target); err == nil {
		return nil
	}
	return usagef("if %s was to be a command: did you mean '%s'?", name, near)
}
