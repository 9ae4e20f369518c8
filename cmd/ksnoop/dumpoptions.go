package main

import (
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/btfdump"
)

// dumpFlags is how values look.
func dumpFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "compact", Usage: "print a value on one line"},
		&cli.BoolFlag{Name: "skip-names", Usage: "leave out member names and types"},
		&cli.BoolFlag{Name: "emit-zeroes", Usage: "print members that are zero, too"},
		&cli.BoolFlag{Name: "no-strings", Usage: "print arrays of char by element"},
		&cli.StringFlag{Name: "indent", Usage: "indent each level by `N` blanks, or by a tab (N = tab)"},
	}
}

// dumpOptions reads dumpFlags. indent is what a level is indented by if the
// command line does not say.
func dumpOptions(c *cli.Context, indent string) (btfdump.Options, error) {
	opts := btfdump.Options{
		Compact:     c.Bool("compact"),
		SkipNames:   c.Bool("skip-names"),
		EmitZeroes:  c.Bool("emit-zeroes"),
		EmitStrings: !c.Bool("no-strings"),
		Indent:      indent,
	}
	if !c.IsSet("indent") {
		return opts, nil
	}
	text := c.String("indent")
	if text == "tab" {
		opts.Indent = "\t"
		return opts, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 16 {
		return opts, usagef("--indent is %q: it must be a number from 1 to 16, or tab", text)
	}
	opts.Indent = strings.Repeat(" ", n)
	return opts, nil
}
