// Package run runs a trace from its beginning to its end, with the command that runs
// meanwhile, and notifies others.
package run

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/listing"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// Options selects what is traced, how long, and how it is shown.
type Options struct {
	Specs    target.Specs
	Programs target.Programs
	Bounds   Bounds
	Tables   TableOptions
	Ready    ReadyOptions
	Command  []string // command that runs meanwhile, or nil
	Own      Inherited
	Appearance
	Summary bool
	File    FileOptions // of Record, or none
	Debug   bool
	Version string // version of ksnoop
	Verbose bool
}

// sink receives the records of a trace.
type sink interface {
	// open begins anew for a unit: before it is loaded, and again if attaching has
	// replaced it.
	open(k *runtime.Kernel, unit *compiler.Unit) error
	// begin is called when everything is attached.
	begin(session *runtime.Session) error
	// follow takes records, losses and tables until the session is stopped.
	follow(session *runtime.Session, run *tracing, losses *watch, tables *tables) error
	// end takes the last losses, the tables and the counts at the end.
	end(counts runtime.SessionCounts, losses *watch, tables *tables) error
}

// Trace traces until a limit, a signal, or the end of a process or command.
func Trace(o *Options, s *term.Streams) error {
	looks, err := o.On(s.Out)
	if err != nil {
		return err
	}
	p := &printing{o: o, streams: s, looks: looks}
	if o.File.Name != "" {
		return record(o, s, p)
	}
	return trace(o, s, p)
}

func trace(o *Options, s *term.Streams, to sink) error {
	run, err := openTracing(o, s)
	if err != nil {
		return err
	}
	defer run.close()
	bound, unit, err := prepare(o, s.Err)
	if err != nil {
		return err
	}
	k := bound.Kernel
	if err := errors.Join(o.Tables.Check(unit), checkEvents(o, unit)); err != nil {
		return err
	}
	if err := to.open(k, unit); err != nil {
		return err
	}
	target.WarnRedirect(s.Out, s.Err)
	if o.Debug {
		listing.Describe(s.Err, unit)
	}
	forgetCode()
	session, err := runtime.Load(unit, k)
	var refused *runtime.VerifierError
	if errors.As(err, &refused) {
		listing.DescribeRefusal(s.Err, unit, refused, o.Debug)
	}
	if err != nil {
		return err
	}
	listing.WarnRefused(s.Err, unit, session.Refused(), o.Debug)
	defer func() {
		_ = term.WithProgress(s.Err, session, "detaching", len(unit.Probes()), session.Close)
	}()
	defer run.traced.close() // it reads the session
	stopper := StopOnSignal(session, run.command, run.ready, o.Own, func() { term.Hurry(s.Out) })
	if run.cgroup != nil {
		if err := session.TraceIn(run.cgroup); err != nil {
			return err
		}
	}
	if o.Programs.Attach == "" {
		session.Recompile = func() (*compiler.Unit, error) { return bound.Compile(&o.Programs, k) }
	}
	if err := attach(o, s.Err, session, stopper); err != nil {
		return stopper.Explain(err)
	}
	if loaded := session.Unit(); loaded != unit {
		unit = loaded
		if err := to.open(k, unit); err != nil {
			return err
		}
	}
	if err := to.begin(session); err != nil {
		return err
	}
	return run.follow(o, s, session, unit, to, stopper)
}

// follow gives a sink what an attached session shows until it is stopped, and its counts.
func (t *tracing) follow(o *Options, s *term.Streams, session *runtime.Session, unit *compiler.Unit, to sink, stopper *stopper) error {
	guide := newGuide(s.Err, o, unit, session.EventCounts)
	guide.start(tooLong)
	defer guide.stop()
	if err := t.begin(session, s.Err); err != nil {
		return stopper.Explain(err)
	}
	losses := startWatch(session, unit, s.Err, t.cgroup)
	tables := startTables(session, &o.Tables, unit.Iterates())
	err := to.follow(session, t, losses, tables)
	tables.stop()
	losses.stop()
	guide.stop()
	t.traced.report(s.Err)
	err = errors.Join(err, finish(o, s, session, unit, to, losses, tables, err == nil))
	guide.end(stopper.signal())
	return t.end(session, err)
}

// checkEvents returns an error if events or their rate are bounded, and there is nothing
// that this could concern.
func checkEvents(o *Options, unit *compiler.Unit) error {
	if o.Bounds.Events > 0 && render.OnlyTables(unit) {
		return exit.Usagef("-n is for events, and these specs have a table in place of them: --for ends after a time")
	}
	return o.Programs.CheckRate(unit)
}

// finish prints the counts of a session, on stderr even if the output has failed.
func finish(o *Options, streams *term.Streams, session *runtime.Session, unit *compiler.Unit, to sink, losses *watch, tables *tables, writable bool) error {
	err := errors.Join(session.Stop(), session.Discard()) // the events after the limit of -n, or after the reader has gone
	if err != nil {
		return err
	}
	a, err := session.Counts()
	if err != nil {
		return err
	}
	if writable {
		losses.add(&a)
		err = to.end(a, losses, tables)
	}
	term.Say(streams.Err, session.Interrupted())
	term.Say(streams.Err, render.Losses(a, o.Verbose))
	if o.Summary {
		fmt.Fprint(streams.Err, render.NewSummary(unit, a).Text(term.WidthOf(streams.Err)))
	}
	return err
}

// prepare compiles the specs of the command line for the running kernel.
func prepare(o *Options, stderr io.Writer) (*target.Bound, *compiler.Unit, error) {
	traces, err := o.Specs.Parse()
	if err != nil {
		return nil, nil, err
	}
	if t := target.FirstIterator(traces); t != nil && o.Command != nil {
		return nil, nil, exit.Usagef("%s reads what is there now and ends, so that no command runs meanwhile: run %s before", t.Target(), o.Command[0])
	}
	if finds := func(t *spec.Trace) bool { return !t.Values }; o.Specs.Objects > 0 && !slices.ContainsFunc(traces, finds) {
		return nil, nil, exit.Usagef("--objects is for objects that calls find, and only memory is to be watched: leave it out")
	}
	forgetCode()
	bound, err := o.Specs.Bind(traces, target.Choice{}, &o.Programs, stderr)
	if err != nil {
		return nil, nil, err
	}
	o.Programs.Keys = o.Tables.Keys
	o.Programs.ClearTables = o.Tables.Clear && target.FirstIterator(traces) == nil // each pass over iterators has its own anyway
	o.Programs.CountCalls = o.Specs.Follow == nil && (o.Summary || o.Format == "json" || o.File.Name != "")
	describeFollowing(o, bound.Plan, stderr)
	unit, err := bound.Compile(&o.Programs, bound.Kernel)
	return bound, unit, err
}

// attach attaches what can be attached; it returns an error only if nothing can.
func attach(o *Options, stderr io.Writer, session *runtime.Session, stopper *stopper) error {
	var n int
	unit := session.Unit()
	err := term.WithProgress(stderr, session, "attaching", len(unit.Probes()), func() (err error) {
		n, err = session.Attach()
		if n > 0 && stopper.came() {
			n, err = 0, runtime.ErrStopped
		}
		return err
	})
	if n == 0 || o.Specs.Watch && err != nil {
		return err
	}
	if err != nil {
		listing.WarnUntraced(stderr, exit.Split(err))
	}
	term.Say(stderr, session.Notes())
	if o.Debug && session.Unit() != unit {
		listing.Describe(stderr, session.Unit())
	}
	if o.Verbose || o.Debug {
		fmt.Fprintf(stderr, "ksnoop: attached %d of %d probes\n", n, len(unit.Probes()))
	}
	return nil
}
