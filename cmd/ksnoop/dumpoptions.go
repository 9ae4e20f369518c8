package main

import (
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ksnoop/ksnoop/btfdump"
)

// dumpFlags is how values look.
func dumpFlags(f *pflag.FlagSet) {
	f.Bool("compact", false, "print an event on one line, as -o compact; with -o text, or dump, each value")
	f.Bool("skip-names", false, "leave out member names and types")
	f.Bool("emit-zeroes", false, "print members that are zero, too")
	f.Bool("no-strings", false, "print arrays of char by element")
	f.String("indent", "", "indent each level by `N` blanks, or by a tab (N = tab)")
}

// dumpOptions reads dumpFlags. indent is what a level is indented by if the
// command line does not say.
func dumpOptions(c *invocation, indent string) (btfdump.Options, error) {
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
