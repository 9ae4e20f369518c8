package runtime

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/codegen"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
)

// Options are the options of [Trace] besides the specs. The zero value traces all
// processes but this one, by the best attach kind of each function.
type Options struct {
	// Wishes are the attach kind, and whether the specs are a call chain.
	Wishes resolve.Wishes
	// Programs selects the calls that are traced and how much of them is
	// recorded. PID and TID are numbers in this process's pid namespace. What Self,
	// Tree and Cgroup are follows from the options below.
	Programs compiler.Options
	// Tree also traces the descendants of Programs.PID, or if that is 0 the
	// processes that Attached starts by [Session.FollowChildren].
	Tree bool
	// Cgroup is the directory of a cgroup (v2) to trace, with those below it, or
	// nil for all.
	Cgroup *os.File
	// TraceSelf also traces this process, as Programs.PID does if it is this process.
	// The function that is called with an event must then make no traced calls: each
	// would be an event.
	TraceSelf bool
	// Attached, unless nil, is called when everything is attached that can be.
	// An error ends the trace.
	Attached func(*Session) error
}

// ErrEnough ends a trace without an error if the function that is called with
// each event returns it.
var ErrEnough = errors.New("enough events")

// Result describes a trace that has ended.
type Result struct {
	// Plan has the probes that the specs were bound to, the functions of globs
	// that are left out, and remarks for the user.
	Plan *compiler.Plan
	// Untraced has an [*AttachError] for each probe that could not be attached,
	// and a [*VerifierError] for each that could not be loaded.
	Untraced []error
	// Notes are sentences for the user about the session.
	Notes  []string
	Counts SessionCounts
	// Tables has what was counted of specs with aggregates. While tracing, they
	// are known from [Session.Tables] of the session that Attached gets.
	Tables []*Table
}

// Trace traces functions of the running kernel, and calls show with each event
// until ctx is done, which is not an error, or show returns an error. Once ctx is done, the
// events of calls before still come, until show returns [ErrEnough]. An event is
// valid during the call only; if show is nil, events are just counted. Specs are those
// of the ksnoop command: docs/spec.md describes the language, docs/kprobe-events.md
// that of kprobe_events lines.
//
// It needs CAP_BPF and CAP_PERFMON. If specs are wrong, the error joins a [*spec.Error] for
// each, of which errors.As finds the first; if a function that does not come from a glob
// cannot be attached to, it may be known before anything is attached, and errors.As finds a
// [*resolve.KindError]. If ctx is done before all is attached, the error is [ErrStopped].
// The result is not nil once all has been attached, even if there is an error. Nothing
// stays attached, even if show panics.
func Trace(ctx context.Context, specs []string, o Options, show func(*Event) error) (result *Result, err error) {
	traces, err := parseAll(specs)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, ErrStopped
	}
	var plan *compiler.Plan
	var misfit error
	k, err := OpenFor(traces, nil, func(target *compiler.Target) bool {
		plan, misfit = resolve.All(traces, target, o.Wishes)
		return resolve.Settled(misfit, target)
	})
	if err := cmp.Or(err, misfit); err != nil {
		return nil, err
	}
	unit, err := k.compile(plan, o)
	if err != nil {
		return nil, err
	}
	session, err := Load(unit, k)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	if o.Wishes.Attach == "" {
		session.Recompile = func() (*compiler.Unit, error) { return k.compile(plan, o) }
	}
	result, err = session.trace(ctx, o, show)
	if result != nil {
		result.Plan = plan
	}
	return result, err
}

func parseAll(specs []string) (traces []*spec.Trace, err error) {
	var errs []error
	for _, text := range specs {
		t, err := kprobe.ParseAny(text)
		traces, errs = append(traces, t), append(errs, err)
	}
	if len(specs) == 0 {
		errs = append(errs, errors.New("there is no spec to trace by"))
	}
	return traces, errors.Join(errs...)
}

// compile compiles a plan with the process ids as the kernel knows them.
func (k *Kernel) compile(plan *compiler.Plan, o Options) (*compiler.Unit, error) {
	programs := o.Programs
	if err := k.FindProcesses(&programs); err != nil {
		return nil, err
	}
	self := programs.Self
	if o.TraceSelf {
		programs.Self = 0
	}
	programs.Cgroup, programs.Tree = o.Cgroup != nil, nil
	if o.Tree {
		tasks, err := resolve.FindTasks(k.types)
		if err != nil {
			return nil, err
		}
		programs.Tree = tasks
	}
	unit, err := codegen.Compile(plan.Probes, programs)
	if err == nil && unit.Tree != nil { // of what this process starts, whether it is traced itself or not
		unit.Tree.Self = self
	}
	return unit, err
}

// trace attaches, shows events until the trace is to end, and counts the rest.
func (s *Session) trace(ctx context.Context, o Options, show func(*Event) error) (*Result, error) {
	if o.Cgroup != nil {
		if err := s.TraceIn(o.Cgroup); err != nil {
			return nil, err
		}
	}
	release := context.AfterFunc(ctx, func() { s.Stop() })
	defer release()
	n, err := s.Attach()
	if ctx.Err() != nil { // the other goroutine may not have run yet
		return nil, ErrStopped
	}
	if n == 0 {
		return nil, err
	}
	r := &Result{Untraced: split(err)}
	for _, refused := range s.Refused() {
		r.Untraced = append(r.Untraced, refused)
	}
	err = nil
	if o.Attached != nil {
		err = o.Attached(s)
	}
	if err == nil {
		err = s.eachEvent(show)
	}
	err = errors.Join(err, s.Stop(), s.Discard())
	r.Notes = append(s.Notes(), s.Interrupted()...)
	var uncounted error
	r.Counts, uncounted = s.Counts()
	var untabled error
	r.Tables, untabled = s.Tables()
	return r, errors.Join(err, uncounted, untabled)
}

// eachEvent calls show with each event until the session is stopped, or show
// returns ErrEnough.
func (s *Session) eachEvent(show func(*Event) error) error {
	for ev := new(Event); ; {
		switch err := s.Read(ev); {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, ErrWoken):
			continue
		case err != nil:
			return err
		}
		if show == nil {
			continue
		}
		switch err := show(ev); {
		case errors.Is(err, ErrEnough):
			return nil
		case err != nil:
			return err
		}
	}
}

// split returns the errors that err joins.
func split(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}
