package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/run"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/render"
)

func followCommand(e *environment) *cli.Command {
	o := &run.Options{Own: e.own, Version: buildVersion()}
	f := new(resolve.Following)
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
			textsFlag("in", "show only `FUNCTION`, a glob or MODULE:GLOB; may be given several times (default: all)", &f.In),
			parsedFlag("show", "show `VALUES` with the first line, and later when they have changed, as in 'skb->len,skb->mark:x'", &f.Show, shownValues(f)),
			parsedFlag("objects n", "follow `N` objects, and end when they have ended", &f.Objects, number[int](run.MostEvents)),
			textsFlag("also", "follow what `FUNCTION` returns when it gets an object, too; may be given several times", &f.Also),
			onOffFlag("stack s", "show the kernel's stack with each line", &f.Stack),
			pagesFlag("events", &o.Programs.Ring),
		}, filterFlags(&o.Programs, &o.Specs), timeFlags(&o.Bounds, &o.Ready), talkFlags(&o.Debug, &o.Verbose), lookFlags(&o.Appearance), valueFlags(&o.Values)),
		Action: e.traces(&o.Specs, &o.Command, func() error {
			if n := len(o.Specs.Texts); n > 1 {
				return exit.Usagef("follow takes one spec, and there are %d: options begin with a dash", n)
			}
			f.Modules = runtime.LoadedModules()
			o.Specs.Follow = f
			return run.Trace(o, &e.Streams)
		}),
	}
}

// shownValues returns a function that parses a value of --show, a list of items, and
// adds it to those before.
func shownValues(f *resolve.Following) func(option, text string) ([]*spec.Trace, error) {
	return func(option, text string) ([]*spec.Trace, error) {
		if strings.TrimSpace(text) == "" {
			return nil, noValue("ksnoop follow", option)
		}
		t, err := spec.ParseItems(text)
		if err != nil {
			return nil, err
		}
		return append(f.Show, t), nil
	}
}
