package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
)

func infoCommand() *cli.Command {
	return &cli.Command{
		Name:      "info",
		Usage:     "show the prototypes of functions",
		ArgsUsage: "FUNCTION...",
		Flags:     commonFlags(),
		Action:    info,
	}
}

// info prints the prototype of each function that it finds.
func info(c *cli.Context) error {
	traces, err := parse(c)
	if err != nil {
		return err
	}
	_, target, err := openTarget(traces)
	if err != nil {
		return err
	}
	var errs []error
	for _, t := range traces {
		fn, err := compiler.FindFunction(t, target)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		fmt.Fprintf(c.App.Writer, "%s;\n", btfdump.Decl(fn.Type, fn.Name))
	}
	return errors.Join(errs...)
}
