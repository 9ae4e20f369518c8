package main

import (
	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/run"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
	"github.com/ksnoop/ksnoop/runtime/render"
)

func traceCommand(e *environment) *cli.Command {
	o := &run.Options{Own: e.own, Version: buildVersion()}
	return &cli.Command{
		Name:        "trace",
		Usage:       "trace functions until interrupted (the default)",
		ArgsUsage:   "SPEC... [-- COMMAND [ARGUMENT...]]",
		Description: specExamples,
		Flags: join(fileFlag(&o.Specs), outputFlag(&o.Appearance, render.TraceFormats), programFlags(&o.Programs, &o.Specs, &o.Summary),
			eventsFlag(&o.Bounds), timeFlags(&o.Bounds, &o.Ready), recordFlag(&o.File), talkFlags(&o.Debug, &o.Verbose), countFlags(&o.Tables), arrangeFlags(&o.Tables.Arrange), lookFlags(&o.Appearance), valueFlags(&o.Values)),
		Before: e.specsAndCommand(&o.Specs, &o.Command),
		Action: func(*cli.Context) error { return run.Trace(o, &e.Streams) },
	}
}

// recordFlag returns the option for a file that is written besides.
func recordFlag(o *run.FileOptions) []cli.Flag {
	const usage = "also write raw records to `FILE`, from which replay prints the same, in any format"
	return []cli.Flag{parsedFlag("record", usage, &o.Name, func(option, name string) (string, error) {
		if name == "-" {
			return "", exit.Usagef("--record is \"-\": the events are printed on standard output: name a file, or use ksnoop record -w -")
		}
		return notEmpty(option, name)
	})}
}

// specsAndCommand returns a function that stores the specs of a command line, and the
// command to run meanwhile.
func (e *environment) specsAndCommand(s *target.Specs, command *[]string) cli.BeforeFunc {
	return func(c *cli.Context) error {
		operands, behind := commandWords(c)
		if behind != nil {
			if err := e.checkBehind(len(operands)+len(s.Files) == 0, behind); err != nil {
				return err
			}
		}
		*command = behind
		return e.readSpecs(c, s, operands)
	}
}

// specs returns a function that stores the specs of a command line.
func (e *environment) specs(s *target.Specs) cli.BeforeFunc {
	return func(c *cli.Context) error { return e.readSpecs(c, s, allWords(c)) }
}

// readSpecs stores where the specs of a command line are: files, operands, standard
// input.
func (e *environment) readSpecs(c *cli.Context, s *target.Specs, operands []string) error {
	s.Texts, s.In, s.Commands = operands, e.In, commandNames(c.App)
	e.texts, e.parse = operands, kprobe.ParseAny
	if s.Watch {
		e.parse = spec.ParseWatch
	}
	if len(operands)+len(s.Files) == 0 {
		return noOperand(c.Command.Name)
	}
	return nil
}

// outputFlag returns the option for the format of events and values, which is one of
// these.
func outputFlag(a *run.Appearance, formats []string) []cli.Flag {
	return []cli.Flag{choiceFlag("output o", "print events as `FORMAT`: %s", &a.Format, formats)}
}

// countFlags returns the options for what tables count, and when.
func countFlags(o *run.TableOptions) []cli.Flag {
	return in(tables,
		parsedFlag("every", "show tables each `DURATION`, such as 500ms, 2m or 10 (seconds), and at the end, or the objects of iterators again; on a terminal, redraw tables in place", &o.Every, run.ParseTime),
		onOffFlag("clear", "with --every, count each interval anew", &o.Clear),
		keysFlag(&o.Keys),
	)
}

// arrangeFlags returns the options for which rows of tables are shown.
func arrangeFlags(a *render.Arrangement) []cli.Flag {
	return in(tables,
		parsedFlag("top", "show the first `N` rows of each table", &a.Top, number[int](run.MostRows)),
		textFlag("sort", "sort rows by `ITEM` of the spec: aggregates descend, keys ascend (default: the first aggregate)", &a.Sort),
	)
}

// keysFlag returns the option for the size of tables.
func keysFlag(n *int) cli.Flag {
	return parsedFlag("keys", "make room for `N` keys in each table (default: 10240)", n, number[int](run.MostRows))
}

// lookFlags returns the options for how lines of text look.
func lookFlags(a *run.Appearance) []cli.Flag {
	a.Values.Indent = " "
	return append(colorFlag(&a.Color), in(looks,
		onOffFlag("no-header", "leave out the headings of the columns", &a.Look.NoHeader),
		onOffFlag("no-symbols", "show pointers inside values without the names of the functions and variables that they point to", &a.NoSymbols),
		choiceFlag("time", "show the time as `CLOCK`: %s (ns since boot, the time of day, seconds since the line before)", &a.Look.Time, render.Clocks),
	)...)
}
