package main

import (
	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/listing"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/replay"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
)

func infoCommand(e *environment) *cli.Command {
	o := new(listing.ListOptions)
	return &cli.Command{
		Name:      "info",
		Usage:     "show the prototypes of functions and tracepoints, types, and the fields of events",
		ArgsUsage: "FUNCTION|TYPE...",
		Description: `A FUNCTION may have a module before it, and wildcards:

   ksnoop info vfs_read
   ksnoop info 'tcp_*' tp:sched_switch nf_conntrack:nf_conntrack_in

A TYPE is shown with the offsets and sizes of its members in bytes, and with the holes
between them. Types are those of the kernel, or else of the loaded modules:

   ksnoop info 'struct sock' 'enum pid_type' gfp_t
   ksnoop info 'nf_conntrack:struct nf_conn'

For a kprobe_events line, it shows the contents of the event's file format in tracefs:

   ksnoop info 'p:read vfs_read count=$arg3'

A file of ksnoop record is described: where, when and of what it was recorded.`,
		Flags: join(hidden(join(programFlags(new(target.Programs), new(target.Specs), new(bool)), talkFlags(new(bool), new(bool)))),
			fileFlag(&o.Specs), typesFlag(&o.Kernel.Types), listingFlag(&o.Format), colorFlag(&o.Color)),
		Before: e.specs(&o.Specs),
		Action: func(*cli.Context) error { return replay.Info(o, e.Out) },
	}
}
