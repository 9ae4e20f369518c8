package main

import (
	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/listing"
)

func compileCommand(e *environment) *cli.Command {
	o := new(listing.CompileOptions)
	return &cli.Command{
		Name:      "compile",
		Usage:     "show what specs compile to: attach kinds, records, maps, annotated programs",
		ArgsUsage: "SPEC...",
		Description: `This works for any user, for the running kernel or for another one:

   ksnoop compile 'vfs_read(file->f_flags & 2, return < 0)'
   ksnoop compile --btf vmlinux --kernel-features 6.12 -s vfs_read ext4_file_read_iter

The check that excludes ksnoop itself is not shown.`,
		Flags:  join(programFlags(&o.Programs, &o.Specs, &o.Programs.CountCalls), fileFlag(&o.Specs), kernelFlags(&o.Kernel), listingFlag(&o.Format)),
		Before: e.specs(&o.Specs),
		Action: func(*cli.Context) error { return listing.Compile(o, &e.Streams) },
	}
}
