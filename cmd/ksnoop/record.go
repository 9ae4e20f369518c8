package main

import (
	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/run"
)

func recordCommand(e *environment) *cli.Command {
	o := &run.Options{Own: e.own, Version: buildVersion()}
	return &cli.Command{
		Name:      "record",
		Usage:     "write raw records to a file, for replay",
		ArgsUsage: "SPEC... [-- COMMAND [ARGUMENT...]]",
		Description: `What decodes the records is in the file, too, so that replay prints it anywhere:

   ksnoop record -w FILE 'vfs_read(file, count)' -- ls
   ksnoop replay FILE -o json
   ksnoop record -w FILE --rotate 100M --keep 9 'tcp_drop*'    at most ten files`,
		Flags: join([]cli.Flag{
			textFlag("write w", "write to `FILE`; - is standard output", &o.File.Name),
			parsedFlag("rotate", "begin the next file at `SIZE` bytes, such as 64K, 100M or 2G: FILE is then the newest, FILE.1 the one before", &o.File.Rotate, run.FileSize),
			parsedFlag("keep", "with --rotate, keep `N` files besides the newest (default: 9)", &o.File.Keep, number[int](10_000)),
		}, fileFlag(&o.Specs), programFlags(&o.Programs, &o.Specs, &o.Summary),
			eventsFlag(&o.Bounds), timeFlags(&o.Bounds, &o.Ready), talkFlags(&o.Debug, &o.Verbose), countFlags(&o.Tables)),
		Before: e.specsAndCommand(&o.Specs, &o.Command),
		Action: func(*cli.Context) error { return run.Record(o, &e.Streams) },
	}
}
