package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

func traceCommand() *cli.Command {
	return &cli.Command{
		Name:      "trace",
		Usage:     "trace functions until interrupted (the default)",
		ArgsUsage: "SPEC...",
		Flags:     append(commonFlags(), dumpFlags()...),
		Action:    trace,
	}
}

func trace(c *cli.Context) error {
	options, err := dumpOptions(c, " ")
	if err != nil {
		return err
	}
	unit, kernel, err := compileTraces(c)
	if err != nil {
		return err
	}
	if c.Bool("debug") {
		describe(c.App.ErrWriter, unit)
	}
	session, err := runtime.Load(unit, kernel)
	if err != nil {
		return debugError(c, err)
	}
	defer session.Close()
	if err := attach(c, session, unit); err != nil {
		return err
	}
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupts
		signal.Stop(interrupts) // a second one ends ksnoop at once
		session.Stop()
	}()
	if err := show(c.App.Writer, session, newPrinter(options)); err != nil {
		return err
	}
	return reportLosses(c.App.ErrWriter, session, unit)
}

func compileTraces(c *cli.Context) (*compiler.Unit, *runtime.Kernel, error) {
	traces, err := parse(c)
	if err != nil {
		return nil, nil, err
	}
	kernel, target, err := openTarget(traces)
	if err != nil {
		return nil, nil, err
	}
	opts, err := compileOptions(c, target)
	if err != nil {
		return nil, nil, err
	}
	if opts.Self, err = runtime.Self(); err != nil {
		return nil, nil, err
	}
	probes, err := resolve(traces, target)
	if err != nil {
		return nil, nil, err
	}
	unit, err := compiler.Compile(probes, opts)
	return unit, kernel, err
}

// attach attaches what can be attached; that is an error only if nothing can.
func attach(c *cli.Context, session *runtime.Session, unit *compiler.Unit) error {
	n, err := session.Attach()
	if n == 0 {
		return err
	}
	if err != nil {
		for _, e := range split(err) {
			fmt.Fprintf(c.App.ErrWriter, "ksnoop: %v; it is not traced\n", e)
		}
	}
	if c.Bool("verbose") || c.Bool("debug") {
		fmt.Fprintf(c.App.ErrWriter, "ksnoop: attached %d of %d probes\n", n, len(unit.Probes()))
	}
	return nil
}

// show prints events until the session is stopped. Text is written when no
// more events wait, or when much has gathered.
func show(w io.Writer, session *runtime.Session, out *printer) error {
	const much = 64 << 10
	out.header()
	for ev := new(runtime.Event); ; {
		if len(out.text) >= much || session.Idle() {
			if err := out.flush(w); err != nil {
				return err
			}
		}
		switch err := session.Read(ev); {
		case errors.Is(err, io.EOF):
			return out.flush(w)
		case err != nil:
			return errors.Join(out.flush(w), err)
		}
		if err := out.event(ev); err != nil {
			return err
		}
	}
}

// reportLosses says for each function what could not be delivered.
func reportLosses(w io.Writer, session *runtime.Session, unit *compiler.Unit) error {
	counters, err := session.Counters()
	if err != nil {
		return err
	}
	for i, n := range counters {
		name := unit.Events[i].Probe.Func.Name
		if n.Lost > 0 {
			fmt.Fprintf(w, "ksnoop: lost %d events of %s: the ring buffer was full; --pages makes it larger\n", n.Lost, name)
		}
		if n.NoRoom > 0 {
			fmt.Fprintf(w, "ksnoop: missed %d calls of %s: too many calls were under way at once\n", n.NoRoom, name)
		}
	}
	return nil
}
