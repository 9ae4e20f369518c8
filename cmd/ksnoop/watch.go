package main

import (
	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/run"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime/render"
)

func watchCommand(e *environment) *cli.Command {
	o := &run.Options{Own: e.own, Version: buildVersion()}
	o.Specs.Watch = true
	return &cli.Command{
		Name:      "watch",
		Usage:     "show who writes to a variable, and what",
		ArgsUsage: "MEMORY... [-- COMMAND [ARGUMENT...]]",
		Description: `Each MEMORY takes a hardware breakpoint on each CPU, of which there are few: four on x86. It is
a variable, memory at an address, or a member of either, of 1, 2, 4 or 8 bytes:

   ksnoop watch '@panic_timeout'                 a variable
   ksnoop watch '(int)@panic_timeout'            with a type, where BTF has none
   ksnoop watch '*(u32 *)0xffffffff82a01234'     memory at an address
   ksnoop watch 'tcp_v4_connect(sk->sk_err)'     a member of the object of the next call
   ksnoop watch '(int)@panic_timeout if $comm != "sysctl"'

A condition on the memory is about what was written. docs/watch.md describes all of it.`,
		Flags: join([]cli.Flag{
			parsedFlag("objects", "watch the objects of the next `N` calls that find one (default: 1)", &o.Specs.Objects, number[int](compiler.MostObjects)),
			onOffFlag("stack", "show the callers of the function that writes", &o.Specs.Stack),
		}, outputFlag(&o.Appearance, render.Formats), []cli.Flag{
			pagesFlag("events", &o.Programs.Ring),
			onOffFlag("summary", "count every write, and print the counts at the end", &o.Summary),
		}, eventsFlag(&o.Bounds), timeFlags(&o.Bounds, &o.Ready), talkFlags(&o.Debug, &o.Verbose), lookFlags(&o.Appearance)),
		Before: e.specsAndCommand(&o.Specs, &o.Command),
		Action: func(*cli.Context) error { return run.Trace(o, &e.Streams) },
	}
}
