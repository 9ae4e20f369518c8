package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime"
)

func traceCommand() *cli.Command {
	return &cli.Command{
		Name:        "trace",
		Usage:       "trace functions until interrupted (the default)",
		ArgsUsage:   "SPEC...",
		Description: specExamples,
		Flags:       slices.Concat([]cli.Flag{fileFlag(), outputFlag()}, programFlags(), boundFlags(), talkFlags(), dumpFlags()),
		Action:      trace,
	}
}

func trace(c *cli.Context) error {
	options, err := dumpOptions(c, " ")
	if err != nil {
		return err
	}
	format, err := outputFormat(c)
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
	names := &symbols{read: k.Symbols, stderr: c.App.ErrWriter}
	if needsSymbols(unit, format) {
		names.load() // now, as events would wait for it
	}
	out, err := newOutput(format, options, unit, names)
	if err != nil {
		return err
	}
	if c.Bool("debug") {
		describe(c.App.ErrWriter, unit)
	}
	session, err := runtime.Load(unit, k.Kernel)
	var refused *runtime.VerifierError
	if errors.As(err, &refused) {
		describeRefusal(c.App.ErrWriter, unit, refused, c.Bool("debug"))
	}
	if err != nil {
		return err
	}
	defer func() {
		_ = withProgress(c.App.ErrWriter, session, "detaching", len(unit.Probes()), session.Close)
	}()
	stopper := stopOnSignal(session, run.command, func() { hurry(c.App.Writer) })
	if err := run.restrict(session); err != nil {
		return err
	}
	if err := attach(c, session, unit); err != nil {
		return stopper.explain(err)
	}
	if err := run.begin(session); err != nil {
		return err
	}
	losses := startWatch(session, unit, c.App.ErrWriter)
	err = show(c.App.Writer, run.events(session), out, losses)
	losses.stop()
	return run.end(session, errors.Join(err, finish(c, session, unit, out, err == nil)))
}

// finish prints the account of a session; to stderr even if the output has
// failed.
func finish(c *cli.Context, session *runtime.Session, unit *compiler.Unit, out output, writable bool) error {
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
		err = out.flush(c.App.Writer)
	}
	say(c.App.ErrWriter, session.Unloaded())
	reportLosses(c.App.ErrWriter, a, c.Bool("verbose"))
	if c.Bool("summary") {
		fmt.Fprint(c.App.ErrWriter, s)
	}
	return err
}

// prepare compiles the specs of the command line for the running kernel.
func prepare(c *cli.Context) (*compiler.Unit, *kernel, error) {
	traces, err := parse(c)
	if err != nil {
		return nil, nil, err
	}
	k, err := openKernel()
	if err != nil {
		return nil, nil, err
	}
	target, err := k.target(traces)
	if err != nil {
		return nil, nil, err
	}
	unit, err := compileTraces(c, traces, target, k)
	return unit, k, err
}

// compileTraces compiles specs for a kernel. k is nil unless that is the one
// that runs, whose processes have been given then.
func compileTraces(c *cli.Context, traces []*spec.Trace, target *compiler.Target, k *kernel) (*compiler.Unit, error) {
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
func attach(c *cli.Context, session *runtime.Session, unit *compiler.Unit) error {
	var n int
	err := withProgress(c.App.ErrWriter, session, "attaching", len(unit.Probes()), func() (err error) {
		n, err = session.Attach()
		return err
	})
	if n == 0 {
		return err
	}
	if err != nil {
		warnUntraced(c.App.ErrWriter, split(err))
	}
	say(c.App.ErrWriter, session.Notes())
	if c.Bool("verbose") || c.Bool("debug") {
		fmt.Fprintf(c.App.ErrWriter, "ksnoop: attached %d of %d probes\n", n, len(unit.Probes()))
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
