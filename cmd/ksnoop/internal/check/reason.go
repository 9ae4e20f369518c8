package check

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"sort"
	"strings"

	"github.com/cilium/ebpf/btf"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/report"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// misfit is the reason why a spec does not fit a kernel, in a word or two.
type misfit string

// The reasons.
const (
	fits            misfit = "ok"
	misfitFunction  misfit = "no function"   // or tracepoint, or no function of a glob fits
	misfitInlined   misfit = "inlined"       // it has a type, but no code of its own
	misfitSuffix    misfit = "suffix only"   // the compiler changed its arguments
	misfitArgument  misfit = "no argument"   // none of that name or number
	misfitVariable  misfit = "no variable"   // none of that name, or several
	misfitType      misfit = "type"          // what the spec does with a value does not fit its type
	misfitTraceable misfit = "not traceable" // it exists, but cannot be traced
	misfitUnknown   misfit = "unknown"       // the files do not tell
	notMeant        misfit = "skip"          // the probe file is for other kernels
)

// finding is the result for a subject and a kernel.
type finding struct {
	reason    misfit
	text      string
	notes     []string
	functions int    // number that would be traced
	watch     string // what would be watched
}

// result converts the finding for package report.
func (f finding) result(s *subject, k *kernel) report.Result {
	r := report.Result{
		Name: s.name + " on " + k.name, Status: report.Fail, Text: f.text, Notes: f.notes, File: s.from.File, Line: s.from.Line,
		Fields: []report.Field{{Name: "spec", Value: s.text}, {Name: "kernel", Value: k.name}, {Name: "reason", Value: string(f.reason)}},
	}
	if s.name != s.text {
		r.Fields = append(r.Fields, report.Field{Name: "subject", Value: s.name})
	}
	switch f.reason {
	case fits:
		r.Status = report.Pass
		r.Fields = append(r.Fields, report.Field{Name: "functions", Value: f.functions})
		if f.watch != "" {
			r.Fields = append(r.Fields, report.Field{Name: "watch", Value: f.watch})
		}
	case misfitUnknown:
		r.Status = report.Error
	case notMeant:
		r.Status = report.Skip
	}
	return r
}

// explain returns why a trace does not fit.
func explain(t *spec.Trace, err error, target *compiler.Target) finding {
	var refused *spec.Error
	switch {
	case errors.Is(err, errVmlinuxAlone):
		return finding{reason: misfitUnknown, text: err.Error()}
	case !errors.As(err, &refused):
		return finding{reason: misfitTraceable, text: err.Error()}
	}
	t = pointOf(t, refused, target)
	if !t.Values && (refused.At == t.Func.At || refused.At == t.Module.At) {
		return explainFunction(t, refused, target)
	}
	return explainValue(t, refused, target)
}

// pointOf returns the point of a span that an error is about, or the trace itself.
func pointOf(t *spec.Trace, refused *spec.Error, target *compiler.Target) *spec.Trace {
	end := t.Ending
	if end == nil || refused.At.Start < t.Key.Span().Start && refused.At.End <= end.Func.At.Start && refused.At != end.Module.At {
		return t
	}
	within := func(key spec.Expr) bool {
		at := key.Span()
		return at.Start <= refused.At.Start && refused.At.End <= at.End
	}
	switch {
	case !within(t.Key):
	case !within(end.Key):
		return t
	default: // the key of both
		names := arguments(t, target)
		lacks := false
		spec.Walk(t.Key, func(e spec.Expr) {
			arg, ok := e.(*spec.Arg)
			lacks = lacks || ok && !slices.Contains(names, arg.Name.Name)
		})
		if lacks {
			return t
		}
	}
	return end
}

// explainFunction explains an error about the name of a function.
func explainFunction(t *spec.Trace, refused *spec.Error, target *compiler.Target) finding {
	f := finding{reason: misfitTraceable, text: withHints(refused.Msg, hintLines(refused))}
	name := t.Func.Name
	types := functionsNamed(target.Kernel, kallsyms.Base(name))
	switch {
	case spec.IsGlob(name), refused.Kind == spec.NoTracepoint, refused.Kind == spec.NoIterator:
		f.reason = misfitFunction
	case t.Tracepoint, t.Iterator:
	case target.Symbols != nil && slices.ContainsFunc(target.Symbols.Lookup(name), kallsyms.Symbol.Text):
	case target.Symbols != nil && len(target.Symbols.Suffixed(name)) > 0:
		f.reason = misfitSuffix
	case target.Symbols != nil && len(types) > 0 && name == kallsyms.Base(name):
		f.reason = misfitInlined
	case target.Symbols != nil && len(types) > 0: // the function exists, but not that copy
		f.reason = misfitFunction
	case len(types) == 0:
		f.reason = misfitFunction
		f.text = withHints(refused.Msg, renamedHints(t, refused, target.Kernel))
	}
	return f
}

// explainValue explains an error about a value of a function that exists.
func explainValue(t *spec.Trace, refused *spec.Error, target *compiler.Target) finding {
	hints := hintLines(refused)
	if refused.Kind == spec.NoSymbols {
		hints = []string{"--symbols has it"}
	}
	f := finding{reason: misfitType}
	for e := range values(t) {
		if e.Span() != refused.At {
			continue
		}
		switch e := e.(type) {
		case *spec.Arg:
			if refused.Kind != spec.NoArgument && refused.Kind != spec.NamesInHint {
				break
			}
			f.reason = misfitArgument
			if names := strings.Join(arguments(t, target), ", "); names != "" && refused.Kind == spec.NoArgument && !strings.HasSuffix(refused.Hint, ": "+names) {
				hints = append(hints, "it has "+names)
			}
		case *spec.Builtin:
			if strings.HasPrefix(e.Name.Name, "arg") {
				f.reason = misfitArgument
			}
		case *spec.Global, *spec.Address:
			if t.Values && target.Symbols != nil && len(target.Symbols.Lookup(strings.TrimPrefix(e.String(), "@"))) == 1 && refused.Kind != spec.HiddenAddresses {
				break // the variable is there, and cannot be watched
			}
			if f.reason = misfitVariable; target.Symbols == nil || refused.Kind == spec.HiddenAddresses {
				f.reason = misfitUnknown
			}
		}
		break
	}
	f.text = withHints(refused.Msg, hints)
	return f
}

// arguments returns the names of a function's arguments.
func arguments(t *spec.Trace, target *compiler.Target) (names []string) {
	fn, err := resolve.FindFunction(t, target)
	if err != nil {
		return nil
	}
	for _, p := range fn.Params {
		names = append(names, p.Name)
	}
	return names
}

// values returns all expressions of a trace.
func values(t *spec.Trace) iter.Seq[spec.Expr] {
	return func(yield func(spec.Expr) bool) {
		more := true
		for _, item := range t.AllItems() {
			item.Walk(func(e spec.Expr) { more = more && yield(e) })
		}
	}
}

func hintLines(e *spec.Error) []string {
	if e.Hint == "" {
		return nil
	}
	return strings.Split(strings.TrimSpace(e.Hint), "\n")
}

// withHints appends hints to a message.
func withHints(msg string, hints []string) string {
	if len(hints) == 0 {
		return msg
	}
	text := strings.ReplaceAll(strings.Join(hints, "; "), "?; ", "? ")
	return fmt.Sprintf("%s (%s)", msg, text)
}

// mostRenamed is the largest number of functions to suggest in place of a missing one.
const mostRenamed = 3

// renamedHints returns functions that a missing one may be called now: those whose
// names are similar or contain its name, as in __NAME or NAME_noprof, and that have the
// arguments of the spec.
func renamedHints(t *spec.Trace, refused *spec.Error, types *btf.Spec) []string {
	hints := hintLines(refused)
	part := "_" + strings.Trim(t.Func.Name, "_") + "_"
	var found []string
	for typ, err := range types.All() {
		fn, ok := typ.(*btf.Func)
		if err != nil || !ok || !spec.IsName(fn.Name) || madeForTracing(fn.Name) || !strings.Contains("_"+fn.Name+"_", part) || !takes(fn, t) {
			continue
		}
		if !slices.Contains(found, fn.Name) && fn.Name != refused.Meant {
			found = append(found, fn.Name)
		}
	}
	slices.Sort(found)
	sort.SliceStable(found, func(i, j int) bool { return len(found[i]) < len(found[j]) })
	if len(found) == 0 {
		return hints
	}
	return append(hints, "the name is part of "+strings.Join(found[:min(len(found), mostRenamed)], ", "))
}

// madeForTracing reports whether the kernel made a function for a tracepoint or a
// security hook, whose name it contains.
func madeForTracing(name string) bool {
	prefixes := []string{"__traceiter_", "__probestub_", "__bpf_trace_", "trace_event_", "trace_raw_", "perf_trace_", "bpf_lsm_"}
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// takes reports whether a function has the arguments that a spec names.
func takes(fn *btf.Func, t *spec.Trace) bool {
	proto, ok := fn.Type.(*btf.FuncProto)
	if !ok {
		return false
	}
	for e := range values(t) {
		arg, ok := e.(*spec.Arg)
		if ok && !slices.ContainsFunc(proto.Params, func(p btf.FuncParam) bool { return p.Name == arg.Name.Name }) {
			return false
		}
	}
	return true
}

// functionsNamed returns the functions with a name.
func functionsNamed(types *btf.Spec, name string) []btf.Type {
	found, err := types.AnyTypesByName(name)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(found, func(t btf.Type) bool { _, ok := t.(*btf.Func); return !ok })
}
