package main

import (
	"slices"

	"github.com/spf13/pflag"
)

// check refuses what is missing on the command line of a subcommand, and what has
// no meaning there.
func (c *invocation) check(s *subcommand) (err error) {
	c.options.Visit(func(o *pflag.Flag) {
		if slices.Contains(valuesOf(o), "") {
			err = noValue(s, o.Name)
		}
	})
	none := len(c.operands) == 0 && len(c.Strings("file")) == 0
	switch {
	case err != nil:
		return err
	case s.name == "doctor" && !none:
		return usagef("doctor looks at the whole system and takes no operand %q (ksnoop doctor --help explains more)", c.operands[0])
	case c.behind != nil:
		return checkBehind(none, c.behind)
	case none && s.name != "doctor":
		return noOperand(s.name)
	}
	return nil
}

func noOperand(command string) error {
	what, example := "function", "vfs_read"
	switch command {
	case "dump":
		what, example = "type", "file"
	case "test":
		return usagef("no probe file to test: name one, as in ksnoop test tcp.probes -- ./run.sh (ksnoop help test explains more)")
	case "completion":
		return usagef("completion is for a shell: name it, as in ksnoop completion bash (ksnoop help completion explains more)")
	}
	return usagef("no %s to %s: name one, as in ksnoop %s %s (ksnoop help explains more)", what, command, command, example)
}

// checkBehind refuses a command behind -- with nothing to trace, and none.
func checkBehind(nothing bool, command []string) error {
	switch {
	case nothing:
		return usagef("no function to trace before --, behind which a command stands: as in ksnoop vfs_read -- ls")
	case len(command) == 0:
		return usagef("no command behind --: as in ksnoop vfs_read -- ls")
	}
	return nil
}
