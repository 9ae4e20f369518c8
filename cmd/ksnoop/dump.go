package main

import (
	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/listing"
)

func dumpCommand(e *environment) *cli.Command {
	o := &listing.DumpOptions{Format: listing.Formats[0]}
	return &cli.Command{
		Name:        "dump",
		Usage:       "print bytes from standard input as a value of a type",
		ArgsUsage:   "TYPE",
		Description: "TYPE is the name of a struct, union, enum or typedef, as in 'struct file' or file,\nor #N for the type with the number N in the BTF. 'struct file *' is a pointer to it,\nand 'u32[4]' an array.",
		Flags: join(typesFlag(&o.Types), []cli.Flag{
			choiceFlag("output o", "print `FORMAT`: %s", &o.Format, listing.Formats),
			onOffFlag("hex", "read hexadecimal digits instead of bytes", &o.Hex),
		}, colorFlag(&o.Color), valueFlags(&o.Values)),
		Before: func(c *cli.Context) error {
			operands := allWords(c)
			switch len(operands) {
			case 0:
				return noOperand("dump")
			case 1:
				o.Type = operands[0]
				return nil
			}
			return exit.Usagef("dump takes one type, not %d: quote its name, as in 'struct file'", len(operands))
		},
		Action: func(*cli.Context) error { return listing.Dump(o, &e.Streams) },
	}
}
