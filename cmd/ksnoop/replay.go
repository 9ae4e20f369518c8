package main

import (
	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/replay"
	"github.com/ksnoop/ksnoop/runtime/render"
)

func replayCommand(e *environment) *cli.Command {
	o := new(replay.Options)
	return &cli.Command{
		Name:        "replay",
		Usage:       "print a file of record as trace would have printed it",
		ArgsUsage:   "FILE [if CONDITION]",
		Description: "Any user can run this, on any machine. FILE may be - for standard input.\nWhat is before the damage of a file is printed, and the exit status is 1.",
		Flags: join(outputFlag(&o.Appearance, render.TraceFormats), []cli.Flag{
			parsedFlag("from", "show what has happened from `TIME` on: in ns as in the column TIME, or since the beginning, such as 1.5s", &o.From, replay.ParseMoment),
			parsedFlag("to", "show what has happened until `TIME`, as in --from", &o.To, replay.ParseMoment),
			globsFlag("func", "show only events and tables of `FUNCTION`, a glob; may be given several times (default: all)", &o.Funcs),
			onOffFlag("summary", "print the counts at the end", &o.Summary),
		}, verboseFlag(&o.Verbose), arrangeFlags(&o.Arrange), lookFlags(&o.Appearance), valueFlags(&o.Values)),
		Before: func(c *cli.Context) error {
			o.Operands = allWords(c)
			return nil
		},
		Action: func(*cli.Context) error { return replay.Replay(o, &e.Streams) },
	}
}
