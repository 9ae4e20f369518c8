package main

import (
	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/report"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/verdict"
)

func testCommand(e *environment) *cli.Command {
	o := &verdict.Options{In: e.In, Own: e.own, Version: buildVersion()}
	return &cli.Command{
		Name:      "test",
		Usage:     "run a command, and report whether the kernel did what a probe file expects",
		ArgsUsage: "FILE [-- COMMAND [ARGUMENT...]]",
		Description: `The file says what to count, and what the counts must be:

   ksnoop-probes 1
   suite  reads
   assert no-errors  vfs_read(return < 0)  never
   assert some-open  do_sys_openat2()      at-least 1

   ksnoop test FILE -- ls

The exit status is 0 if all assertions pass, 1 if not, 2 if the file is wrong, 4 if everything was skipped, 69 if this
kernel cannot do it, 77 if it is not permitted, and 124 if the command takes too long.`,
		Flags: join(timeFlags(&o.Bounds, &o.Ready), reportsFlag(&o.Output, report.Formats()), []cli.Flag{
			onOffFlag("list", "list the contents of the file, and end", &o.List),
			onOffFlag("fail-skip", "fail if something is skipped", &o.FailSkip),
			textsFlag("xfail", "expect assertion `NAME` to fail; may be given several times", &o.XFail),
			onOffFlag("allow-emulated", "judge durations although the CPU is emulated", &o.AllowEmulated),
			textFlag("prom-textfile", "write metrics to `FILE` for Prometheus: NAME.prom in the directory of node_exporter's textfile collector", &o.PromTextfile),
			attachFlag(&o.Attach),
			pagesFlag("evidence", &o.Ring),
			keysFlag(&o.Keys),
		}, verboseFlag(&o.Verbose)),
		Before: func(c *cli.Context) error {
			operands, behind := commandWords(c)
			if behind != nil {
				if err := e.checkBehind(len(operands) == 0, behind); err != nil {
					return err
				}
			}
			switch len(operands) {
			case 0:
				return noOperand("test")
			case 1:
				o.File, o.Command = operands[0], behind
				return nil
			}
			return exit.Usagef("test takes one probe file: as in ksnoop test tcp.probes -- ./run.sh")
		},
		Action: func(*cli.Context) error { return verdict.Run(o, &e.Streams) },
	}
}
