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
		Flags:       slices.Concat([]cli.Flag{outputFlag()}, programFlags(), talkFlags(), dumpFlags()),
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
	unit, k, err := prepare(c)
	if err != nil {
		return err
	}
	names := &symbols{read: k.Symbols, stderr: c.App.ErrWriter}
	if needsSymbols(unit) {
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
	stopper := stopOnSignal(session)
	if err := attach(c, session, unit); err != nil {
		return stopper.explain(err)
	}
	losses := startWatch(session, unit, c.App.ErrWriter)
	err = show(c.App.Writer, session, out, losses)
	losses.stop()
	if err != nil {
		return err
	}
	return finish(c, session, unit, out)
}

// finish prints the account of a session that has been stopped.
func finish(c *cli.Context, session *runtime.Session, unit *compiler.Unit, out output) error {
	a, err := readAccount(session)
	if err != nil {
		return err
	}
	s := newSummary(unit, a)
	out.end(s)
	if err := out.flush(c.App.Writer); err != nil {
		return err
	}
	reportLosses(c.App.ErrWriter, a, c.Bool("verbose"))
	if c.Bool("summary") {
		fmt.Fprint(c.App.ErrWriter, s)
	}
	return nil
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
	self, err := runtime.Self()
	if err != nil {
		return nil, nil, err
	}
	unit, err := compileTraces(c, traces, target, self)
	return unit, k, err
}

// compileTraces compiles specs for a kernel. Process self is left out, if it
// is not 0.
func compileTraces(c *cli.Context, traces []*spec.Trace, target *compiler.Target, self uint32) (*compiler.Unit, error) {
	w, err := wishes(c)
	if err != nil {
		return nil, err
	}
	opts, err := compileOptions(c, target)
	if err != nil {
		return nil, err
	}
	opts.Self = self
	plan, err := resolve(c, traces, target, w)
	if err != nil {
		return nil, err
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
func show(w io.Writer, session *runtime.Session, out output, losses *watch) error {
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
