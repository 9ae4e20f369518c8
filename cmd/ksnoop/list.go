package main

import (
	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/listing"
)

func listCommand(e *environment) *cli.Command {
	o := new(listing.ListOptions)
	return &cli.Command{
		Name:      "list",
		Usage:     "list functions that match, how they would be attached, or why they cannot be",
		ArgsUsage: "GLOB...",
		Description: `Each line has a function: how it would be attached, and its prototype.

   ksnoop list 'tcp_*'             functions of the kernel
   ksnoop list 'nf_conntrack:*'    functions of a module
   ksnoop list 'tp:sched_*'        tracepoints

With --takes, no GLOB means all functions, those of loaded modules included:

   ksnoop list --takes 'struct sk_buff *' --takes 'struct net_device *'`,
		Flags: join(kernelFlags(&o.Kernel), []cli.Flag{
			textsFlag("takes", "list only functions with an argument of `TYPE`, as in 'struct sock *'; may be given several times", &o.Takes),
		}, listingFlag(&o.Format), colorFlag(&o.Color)),
		Before: func(c *cli.Context) error {
			err := e.readSpecs(c, &o.Specs, allWords(c))
			e.texts = nil // they are globs
			if len(o.Takes) == 0 {
				return err
			}
			return nil
		},
		Action: func(*cli.Context) error { return listing.List(o, e.Out) },
	}
}
