package main

import (
	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/run"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/runtime/render"
)

func followCommand(e *environment) *cli.Command {
	o := &run.Options{Own: e.own, Version: buildVersion()}
	f := new(resolve.Following)
	o.Specs.Follow = f
	return &cli.Command{
		Name:      "follow",
		Usage:     "show every function that gets an object, from a call that matches to its end",
		ArgsUsage: "SPEC [-- COMMAND [ARGUMENT...]]",
		Description: `The first item of the SPEC is a pointer to the object. From a call that matches
on, each call of a function that gets this pointer is a line, with the values of
--show that have changed, until the object is freed. Up to 8 objects are followed
at a time.

   ksnoop follow 'ip_send_skb(skb) if skb->len > 100'     a packet
   ksnoop follow 'tcp_v4_connect(sk)' --show 'sk->__sk_common.skc_state'
   ksnoop follow 'do_dentry_open(f)' --in 'vfs_*' -n 1    one file, in few functions`,
		Flags: join(outputFlag(&o.Appearance, render.Formats), []cli.Flag{
			globsFlag("in", "show only `FUNCTION`, a glob or MODULE:GLOB; may be given several times (default: all)", &f.In),
			parsedFlag("show", "show `VALUES` with the first line, and later when they have changed, as in 'skb->len,skb->mark:x'", &f.Show, run.ShownValues(&f.Show)),
			parsedFlag("objects n", "follow `N` objects, and end when they have ended", &f.Objects, number[int](run.MostEvents)),
			textsFlag("also", "follow what `FUNCTION` returns when it gets an object, too; may be given several times", &f.Also),
			onOffFlag("stack s", "show the kernel's stack with each line", &f.Stack),
			pagesFlag("events", &o.Programs.Ring),
		}, filterFlags(&o.Programs, &o.Specs), timeFlags(&o.Bounds, &o.Ready), talkFlags(&o.Debug, &o.Verbose), lookFlags(&o.Appearance), valueFlags(&o.Values)),
		Before: e.specsAndCommand(&o.Specs, &o.Command),
		Action: func(*cli.Context) error { return run.Follow(o, &e.Streams) },
	}
}
