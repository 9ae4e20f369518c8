package resolve

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
)

func matchesAny(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(g string) bool { return spec.Matches(g, name) })
}

// mostFunctions is the largest number of functions that a glob may match.
const mostFunctions = 16384

// addGlob binds a trace to every function that its glob matches and that can be
// traced. Functions that lack what the spec names are left out and counted.
func addGlob(plan *compiler.Plan, t *spec.Trace, target *compiler.Target, w Wishes, m compiler.Measure) error {
	names, err := Names(t, target)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return NoMatch(t)
	}
	before := len(plan.Probes)
	reasons := map[string]int{}
	for _, name := range names {
		one := *t
		one.Func.Name = name
		p, err := bindProbe(&one, target, w, m)
		var refused *spec.Error
		switch {
		case err == nil && len(plan.Probes) > before && len(p.Key) != len(plan.Probes[before].Key):
			reasons[fmt.Sprintf("its key has other values than that of %s", plan.Probes[before].Func.Name)]++
		case err == nil:
			p.OfGlob, p.Asked = true, t
			plan.Probes = append(plan.Probes, p)
			plan.Notes = append(plan.Notes, p.Func.Notes()...)
		case errors.As(err, &refused) && target.Partial && mayFitAll(&one, target, refused):
			return err
		case errors.As(err, &refused):
			reasons[refused.Reason()]++
		default:
			return err
		}
	}
	found := len(plan.Probes) - before
	if found == 0 && len(names) == 1 {
		return t.Errorf(t.Func.At, "%s is the only function that matches '%s', and it cannot be traced", names[0], t.Func.Name).
			WithHint("%s", slices.Collect(maps.Keys(reasons))[0])
	}
	if found == 0 {
		return t.Errorf(t.Func.At, "none of the %d functions that match '%s' can be traced", len(names), t.Func.Name).
			WithHint("%s", commonest(reasons))
	}
	if found > mostFunctions {
		return t.Errorf(t.Func.At, "'%s' means %d functions, and %d is the limit", t.Func.Name, found, mostFunctions)
	}
	for reason, n := range reasons {
		plan.LeftOut[reason] += n
	}
	return nil
}

// mayFitAll reports whether a function that was refused with a part of the types may fit
// all of them. A part has functions and their arguments whole, but not all other types.
func mayFitAll(t *spec.Trace, target *compiler.Target, refused *spec.Error) bool {
	if Settled(refused, target) {
		return false
	}
	_, err := FindFunction(t, target)
	return err == nil
}

// NoMatch returns the error for a glob that matches nothing.
func NoMatch(t *spec.Trace) error {
	what, where := "function", "this kernel"
	switch {
	case t.Tracepoint:
		what = "tracepoint"
	case t.Iterator:
		what = "iterator"
	}
	if t.Module.Name != "" {
		where = t.Module.Name
	}
	err := t.Errorf(t.Func.At, "no %s of %s matches '%s'", what, where, t.Func.Name)
	if strings.Contains(t.Func.Name, ".*") {
		return err.WithHint("did you mean '%s'? wildcards are those of a shell", strings.ReplaceAll(t.Func.Name, ".*", "*"))
	}
	if t.Tracepoint || t.Iterator || t.Module.Name != "" {
		return err
	}
	return err.WithHint("functions of a module need its name: MODULE:%s; tracepoints are tp:%s", t.Func.Name, t.Func.Name)
}

// commonest returns the most frequent reason.
func commonest(reasons map[string]int) string {
	best := ""
	for r, n := range reasons {
		if best == "" || n > reasons[best] || n == reasons[best] && r < best {
			best = r
		}
	}
	return fmt.Sprintf("of most: %s", best)
}

// Names lists the functions or tracepoints that a glob matches, in alphabetical
// order. It lists those with a type and, where this is known, with code that
// has a hook.
func Names(t *spec.Trace, target *compiler.Target) ([]string, error) {
	types := target.Kernel
	if m := t.Module.Name; m != "" && m != vmlinux {
		if target.Module == nil {
			return nil, nil
		}
		var err error
		types, err = target.Module(m)
		if errors.Is(err, compiler.ErrNoModuleBTF) {
			err := t.Errorf(t.Module.At, "module %s is not loaded, or has no BTF", m)
			if hint := notInModule(target, t); hint != "" {
				return nil, err.WithHint("%s", hint)
			}
			return nil, err
		}
		if err != nil {
			return nil, fmt.Errorf("read the BTF of module %s: %w", m, err)
		}
	}
	kind, listed := FuncKind, func(name string) (string, bool) { return listed(target, name) }
	switch {
	case t.Tracepoint:
		kind, listed = "", listedTracepoint
	case t.Iterator:
		return iterators(t, target)
	}
	var names []string
	for name, err := range typeNames(target, types, kind) {
		if err != nil {
			return nil, fmt.Errorf("read the kernel's types: %w", err)
		}
		if name, ok := listed(name); ok && spec.Matches(t.Func.Name, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// listedTracepoint returns the name of the tracepoint that a type belongs to.
func listedTracepoint(typ string) (string, bool) {
	name, ok := strings.CutPrefix(typ, tracepointType)
	return name, ok && spec.IsName(name)
}

// listed returns a function's name, and whether a glob may match it: it can be traced,
// as far as is known.
func listed(t *compiler.Target, name string) (string, bool) {
	if !spec.IsName(name) || noTrampoline[name] || t.Hookable != nil && !t.Hookable(name) {
		return "", false
	}
	return name, t.Symbols == nil || slices.ContainsFunc(t.Symbols.Lookup(name), kallsyms.Symbol.Entry)
}
