package target

import (
	"slices"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// FirstIterator returns the first trace of an iterator, or nil if there is none.
func FirstIterator(traces []*spec.Trace) *spec.Trace {
	if i := slices.IndexFunc(traces, func(t *spec.Trace) bool { return t.Iterator }); i >= 0 {
		return traces[i]
	}
	return nil
}

// isFunction reports whether a trace, or the end of a span, is of functions.
func isFunction(t *spec.Trace) bool {
	return !t.Tracepoint || t.Ending != nil && isFunction(t.Ending)
}

// checkIterators refuses options about calls for iterators, and an attach kind where there
// is no function.
func (s *Specs) checkIterators(traces []*spec.Trace, p *Programs) error {
	t := FirstIterator(traces)
	if t == nil {
		if p.Attach != "" && !slices.ContainsFunc(traces, isFunction) {
			return exit.Usagef("--attach %s is for functions, and %s is a tracepoint", p.Attach, traces[0].Target())
		}
		return nil
	}
	for _, option := range []struct {
		name  string
		given bool
	}{{"pid", p.PID != 0}, {"tid", p.TID != 0}, {"tree", p.Tree}, {"cgroup", p.Cgroup != ""}, {"container", p.Container != ""}} {
		if option.given {
			return exit.Usagef("--%s chooses among calls, and %s has none: write a condition, as in iter:task(task->comm) if task->tgid == 1", option.name, t.Target())
		}
	}
	switch {
	case len(s.Conds) > 0:
		return exit.Usagef("--uid and --comm choose among calls, and %s has none: write a condition, as in iter:task(task->pid) if task->comm == \"sshd\"", t.Target())
	case p.Attach != "":
		return exit.Usagef("--attach %s is for functions, and %s is an iterator", p.Attach, t.Target())
	}
	return nil
}
