package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
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
		Action: func(c *cli.Context) error {
			words := allWords(c)
			if slices.Contains(words, "-") {
				return exit.Usagef("info needs the name of a recording, and - is standard input: write it to a file, as in ksnoop info FILE")
			}
			for len(words) > 0 && replay.IsRecording(words[0]) {
				if err := replay.Info(words[0], o.Format, e.Out); err != nil {
					return err
				}
				if words = words[1:]; len(words)+len(o.Specs.Files) == 0 {
					return nil
				}
			}
			for _, word := range words {
				if _, err := os.Stat(word); err == nil && strings.Contains(word, "/") {
					return fmt.Errorf("read %s: it is not a recording of ksnoop record", word)
				}
			}
			if err := e.readSpecs(c, &o.Specs, words); err != nil {
				return err
			}
			return listing.Info(o, e.Out)
		},
	}
}
