package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime"
)

func traceCommand() *subcommand {
	return &subcommand{
		name:        "trace",
		usage:       "trace functions until interrupted (the default)",
		operands:    "SPEC...",
		description: specExamples,
		flags:       []flags{fileFlag, outputFlag, programFlags, boundFlags, talkFlags, lookFlags, dumpFlags},
		run:         trace,
	}
}

func trace(c *invocation) error {
	options, err := dumpOptions(c, " ")
	if err != nil {
		return err
	}
	format, err := outputFormat(c)
	if err != nil {
		return err
	}
	look, err := readLook(c, format)
	if err != nil {
		return err
	}
	run, err := openTracing(c)
	if err != nil {
		return err
	}
	defer run.ready.close()
	unit, k, err := prepare(c)
	if err != nil {
		return err
	}
	names := &symbols{read: k.Symbols, stderr: c.stderr}
	if needsSymbols(unit, format) {
		names.load() // now, as events would wait for it
	}
	out, err := newOutput(format, options, unit, names)
	if err != nil {
		return err
	}
	out.use(look)
	warnRedirect(c.stdout, c.stderr)
	if c.Bool("debug") {
		describe(c.stderr, unit)
	}
	session, err := runtime.Load(unit, k.Kernel)
	var refused *runtime.VerifierError
	if errors.As(err, &refused) {
		describeRefusal(c.stderr, unit, refused, c.Bool("debug"))
	}
	if err != nil {
		return err
	}
	defer func() {
		_ = withProgress(c.stderr, session, "detaching", len(unit.Probes()), session.Close)
	}()
	stopper := stopOnSignal(session, run.command, func() { hurry(c.stdout) })
	if err := run.restrict(session); err != nil {
		return err
	}
	if err := attach(c, session, unit); err != nil {
		return stopper.explain(err)
	}
	if err := run.begin(session); err != nil {
		return err
	}
	losses := startWatch(session, unit, c.stderr)
	err = show(c.stdout, run.events(session), out, losses)
	losses.stop()
	return run.end(session, errors.Join(err, finish(c, session, unit, out, err == nil)))
}

// finish prints the account of a session; to stderr even if the output has
// failed.
func finish(c *invocation, session *runtime.Session, unit *compiler.Unit, out output, writable bool) error {
	err := errors.Join(session.Stop(), session.Discard()) // what -n leaves, or a reader who has gone
	if err != nil {
		return err
	}
	a, err := readAccount(session)
	if err != nil {
		return err
	}
	s := newSummary(unit, a)
	if writable {
		out.end(s)
		err = out.flush(c.stdout)
	}
	say(c.stderr, session.Unloaded())
	reportLosses(c.stderr, a, c.Bool("verbose"))
	if c.Bool("summary") {
		fmt.Fprint(c.stderr, s.text(widthOf(c.stderr)))
	}
	return err
}

// prepare compiles the specs of the command line for the running kernel.
func prepare(c *invocation) (*compiler.Unit, *kernel, error) {
	traces, err := parse(c)
	if err != nil {
		return nil, nil, err
	}
	k, target, err := openKernelFor(traces)
	if err != nil {
		return nil, nil, err
	}
	unit, err := compileTraces(c, traces, target, k)
	return unit, k, err
}

// compileTraces compiles specs for a kernel. k is nil unless that is the one
// that runs, whose processes have been given then.
func compileTraces(c *invocation, traces []*spec.Trace, target *compiler.Target, k *kernel) (*compiler.Unit, error) {
	w, err := wishes(c, len(traces))
	if err != nil {
		return nil, err
	}
	opts, err := compileOptions(c, target)
	if err != nil {
		return nil, err
	}
	plan, err := resolve(c, traces, target, w)
	if err != nil {
		return nil, err
	}
	if k != nil {
		if err := k.findProcesses(&opts); err != nil {
			return nil, err
		}
	}
	return compiler.Compile(plan.Probes, opts)
}

// attach attaches what can be attached; that is an error only if nothing can.
func attach(c *invocation, session *runtime.Session, unit *compiler.Unit) error {
	var n int
	err := withProgress(c.stderr, session, "attaching", len(unit.Probes()), func() (err error) {
		n, err = session.Attach()
		return err
	})
	if n == 0 {
		return err
	}
	if err != nil {
		warnUntraced(c.stderr, split(err))
	}
	say(c.stderr, session.Notes())
	if c.Bool("verbose") || c.Bool("debug") {
		fmt.Fprintf(c.stderr, "ksnoop: attached %d of %d probes\n", n, len(unit.Probes()))
	}
	return nil
}

func say(w io.Writer, notes []string) {
	for _, note := range notes {
		fmt.Fprintf(w, "ksnoop: %s\n", note)
	}
}

// mostUntraced is how many functions are named that could not be attached: a
// glob may have thousands.
const mostUntraced = 20

func warnUntraced(w io.Writer, errs []error) {
	for _, e := range errs[:min(len(errs), mostUntraced)] {
		fmt.Fprintf(w, "ksnoop: %v; it is not traced\n", e)
	}
	if more := len(errs) - mostUntraced; more > 0 {
		fmt.Fprintf(w, "ksnoop: nor are %d more\n", more)
	}
}

// show prints events until the session is stopped. Text is written when no
// more events wait, or when much has gathered.
func show(w io.Writer, session eventSource, out output, losses *watch) error {
	const much = 64 << 10
	out.begin()
	for ev := new(runtime.Event); ; {
		if out.gathered() >= much || session.Idle() {
			if err := out.flush(w); err != nil {
				return err
			}
		}
		switch err := session.Read(ev); {
		case errors.Is(err, io.EOF):
			losses.show(out)
			return out.flush(w)
		case errors.Is(err, runtime.ErrWoken):
			losses.show(out)
			continue
		case err != nil:
			return errors.Join(out.flush(w), err)
		}
		if err := out.event(ev); err != nil {
			return err
		}
	}
}
