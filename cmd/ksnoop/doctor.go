package main

import (
	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/doctor"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
)

func doctorCommand(e *environment) *cli.Command {
	o := &doctor.Options{Format: doctor.Formats[0], Version: buildVersion()}
	return &cli.Command{
		Name:  "doctor",
		Usage: "report what can be traced here, and what is missing",
		Description: `Any user can run this. It tries each attach kind on a function that is seldom called. The exit status is 0 if
at least one kind works, and 1 if none does.

   ksnoop doctor                what this kernel and this user's capabilities allow
   ksnoop doctor --self-test    trace calls of its own by each kind, and compare all values`,
		Flags: []cli.Flag{
			choiceFlag("output o", "print `FORMAT`: text, or json for one object", &o.Format, doctor.Formats),
			onOffFlag("self-test", "trace known calls of ksnoop itself, and compare all values", &o.SelfTest),
		},
		Before: func(c *cli.Context) error {
			if operands := allWords(c); len(operands) > 0 {
				return exit.Usagef("doctor examines the whole system and takes no operand %q (ksnoop doctor --help explains more)", operands[0])
			}
			return nil
		},
		Action: func(*cli.Context) error { return doctor.Run(o, e.Out) },
	}
}
