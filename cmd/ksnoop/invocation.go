package main

import (
	"io"

	"github.com/spf13/pflag"
)

// invocation is a command line that has been understood, and what it runs in.
type invocation struct {
	options        *pflag.FlagSet // as they were given
	operands       []string       // as the shell has left them
	behind         []string       // the command behind --, with its arguments
	own            inherited
	stdin          io.Reader
	stdout, stderr io.Writer
}

// IsSet says whether an option was given.
func (c *invocation) IsSet(option string) bool { return c.options.Changed(option) }

// Bool says whether an option is on. It is off where there is no such option.
func (c *invocation) Bool(option string) bool {
	on, _ := c.options.GetBool(option)
	return on
}

// String is the value of an option, the last if it was given several times; "":
// there is none.
func (c *invocation) String(option string) string {
	text, _ := c.options.GetString(option)
	return text
}

// Strings is the values of an option that may be given several times.
func (c *invocation) Strings(option string) []string {
	if o := c.options.Lookup(option); o != nil {
		return valuesOf(o)
	}
	return nil
}

// valuesOf is the values of an option that may be given several times; nil: it may
// not.
func valuesOf(o *pflag.Flag) []string {
	if all, ok := o.Value.(pflag.SliceValue); ok {
		return all.GetSlice()
	}
	return nil
}
