package main

import (
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/run"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/runtime/render"
)

func traceCommand(e *environment) *cli.Command {
	o := &run.Options{Own: e.own, Version: buildVersion(), Format: render.Formats[0]}
	o.Values.Indent = " "
	return &cli.Command{
		Name:        "trace",
		Usage:       "trace functions until interrupted (the default)",
		ArgsUsage:   "SPEC... [-- COMMAND [ARGUMENT...]]",
		Description: specExamples,
		Flags: join(fileFlag(&o.Specs), outputFlag(&o.Format), programFlags(&o.Programs, &o.Specs),
			eventsFlag(&o.Bounds), timeFlags(&o.Bounds, &o.Ready), recordFlag(&o.File), talkFlags(&o.Debug, &o.Verbose), tableFlags(&o.Tables), lookFlags(&o.Look, &o.Color, &o.NoSymbols), valueFlags(&o.Values)),
		Action: func(c *cli.Context) error {
			operands, behind := commandWords(c)
			if behind != nil {
				if err := checkBehind(len(operands)+len(o.Specs.Files) == 0, behind); err != nil {
					return err
				}
			}
			o.Command = behind
			if err := e.readSpecs(c, &o.Specs, operands); err != nil {
				return err
			}
			if o.Values.Compact && !c.IsSet("output") {
				o.Format = "compact"
			}
			o.Summary = o.Programs.CountCalls
			return run.Trace(o, &e.Streams)
		},
	}
}

// recordFlag returns the option for a file that is written besides.
func recordFlag(o *run.FileOptions) []cli.Flag {
	f := textFlag("record", "also write raw records to `FILE`, from which replay prints the same, in any format", &o.Name)
	f.Action = func(_ *cli.Context, name string) error {
		if name == "-" {
			return exit.Usagef("--record is \"-\": the events are printed on standard output: name a file, or use ksnoop record -w -")
		}
		return nil
	}
	return []cli.Flag{f}
}

// readSpecs stores where the specs of a command line are: files, operands, standard
// input.
func (e *environment) readSpecs(c *cli.Context, s *target.Specs, operands []string) error {
	s.Texts, s.In, s.Commands = operands, e.In, commandNames(c.App)
	if len(operands)+len(s.Files) == 0 {
		return noOperand(c.Command.Name)
	}
	return nil
}

// outputFlag returns the option for the format of events and values.
func outputFlag(to *string) []cli.Flag {
	f := textFlag("output o", "print events as `FORMAT`: "+exit.OrList(render.Formats), to)
	f.Action = func(_ *cli.Context, format string) error {
		if !slices.Contains(render.Formats, format) {
			return exit.UnknownName("--output", format, render.Formats)
		}
		return nil
	}
	return []cli.Flag{f}
}

// tableFlags returns the options for the tables of specs with aggregates.
func tableFlags(o *run.TableOptions) []cli.Flag {
	return join(countFlags(o), arrangeFlags(&o.Arrange))
}

// countFlags returns the options for what tables count, and when.
func countFlags(o *run.TableOptions) []cli.Flag {
	interval := func(text string) (time.Duration, error) { return run.ParseTime("every", text) }
	return in(tables,
		parsedFlag("every", "show tables each `DURATION`, such as 500ms, 2m or 10 (seconds), and at the end, or the objects of iterators again; on a terminal, redraw tables in place", &o.Every, interval),
		onOffFlag("clear", "with --every, count each interval anew", &o.Clear),
		keysFlag(&o.Keys),
	)
}

// arrangeFlags returns the options for which rows of tables are shown.
func arrangeFlags(a *render.Arrangement) []cli.Flag {
	return in(tables,
		parsedFlag("top", "show the first `N` rows of each table", &a.Top, number[int]("top", run.MostRows)),
		textFlag("sort", "sort rows by `ITEM` of the spec: aggregates descend, keys ascend (default: the first aggregate)", &a.Sort),
	)
}

// keysFlag returns the option for the size of tables.
func keysFlag(n *int) cli.Flag {
	return parsedFlag("keys", "make room for `N` keys in each table (default: 10240)", n, number[int]("keys", run.MostRows))
}

// lookFlags returns the options for how lines of text look.
func lookFlags(look *render.Look, color *string, noSymbols *bool) []cli.Flag {
	look.Time = render.Clocks[0]
	clock := parsedFlag("time", "show the time as `CLOCK`: mono, wall or delta (ns since boot, the time of day, seconds since the line before)", &look.Time, readClock)
	clock.Value = string(look.Time)
	return append(colorFlag(color), in(looks,
		onOffFlag("no-header", "leave out the headings of the columns", &look.NoHeader),
		onOffFlag("no-symbols", "show pointers inside values without the names of the functions and variables that they point to", noSymbols),
		clock,
	)...)
}

func readClock(name string) (render.Clock, error) {
	if slices.Contains(render.Clocks, render.Clock(name)) {
		return render.Clock(name), nil
	}
	var names []string
	for _, c := range render.Clocks {
		names = append(names, string(c))
	}
	return "", exit.UnknownName("--time", name, names)
}
