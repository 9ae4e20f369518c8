package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// parseArgs orders a command line as the cli package wants it: the command,
// its options, then the operands. As with getopt, options may stand anywhere;
// the command is trace unless the first operand names another.
func parseArgs(app *cli.App, args []string) ([]string, error) {
	withValue := optionsWithValue(app)
	options, operands, behind := permute(withValue, args)
	switch {
	case slices.Contains(options, "-V"), slices.Contains(options, "--version"):
		return []string{"--version"}, nil
	}
	help := slices.Contains(options, "-h") || slices.Contains(options, "--help")
	if len(operands) > 0 && operands[0] == "help" {
		help, operands = true, operands[1:]
	}
	command, implied := "trace", true
	if len(operands) > 0 && app.Command(operands[0]) != nil {
		command, operands, implied = operands[0], operands[1:], false
	} else if help {
		return []string{"--help"}, nil
	}
	if help {
		return []string{command, "--help"}, nil
	}
	if command != "trace" {
		operands = append(operands, behind...)
	}
	if err := checkOptions(app.Command(command), withValue, options); err != nil {
		if implied && len(operands) > 0 {
			return nil, cmp.Or(unknownCommand(app, operands[0]), err)
		}
		return nil, err
	}
	if command == "doctor" && len(operands) > 0 {
		return nil, usagef("doctor looks at the whole system and takes no operand %q (ksnoop doctor --help explains more)", operands[0])
	}
	options, files, err := takeFiles(options, withValue)
	if err != nil {
		return nil, err
	}
	line := lineIn(app)
	line.files = files
	none := len(operands) == 0 && len(files) == 0
	if command == "trace" && behind != nil {
		line.command = behind
		err = checkCommand(none, behind)
	} else if none && command != "doctor" {
		err = noOperand(command)
	}
	return slices.Concat([]string{command}, options, []string{"--"}, operands), err
}

func noOperand(command string) error {
	what, example := "function", "vfs_read"
	if command == "dump" {
		what, example = "type", "file"
	}
	return usagef("no %s to %s: name one, as in ksnoop %s %s (ksnoop help explains more)", what, command, command, example)
}

// checkCommand refuses a command behind -- with nothing to trace, and none.
func checkCommand(nothing bool, command []string) error {
	switch {
	case nothing:
		return usagef("no function to trace before --, behind which a command stands: as in ksnoop vfs_read -- ls")
	case len(command) == 0:
		return usagef("no command behind --: as in ksnoop vfs_read -- ls")
	}
	return nil
}

// permute separates options, with their values, from operands, and both from
// what is behind "--", which is nil if that is not there. Clusters of short
// options are taken apart.
func permute(withValue map[string]bool, args []string) (options, operands, behind []string) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return options, operands, args[i+1:]
		}
		if len(arg) < 2 || arg[0] != '-' {
			operands = append(operands, arg)
			continue
		}
		takes := false
		if strings.HasPrefix(arg, "--") {
			options = append(options, arg)
			takes = withValue[strings.TrimPrefix(arg, "--")]
		} else {
			var cluster []string
			cluster, takes = shortOptions(withValue, arg[1:])
			options = append(options, cluster...)
		}
		if takes && i+1 < len(args) {
			i++
			options = append(options, args[i])
		}
	}
	return options, operands, nil
}

// shortOptions takes a cluster such as dp12 apart: -d, -p, 12. wants says that
// the last option's value is the next argument.
func shortOptions(withValue map[string]bool, cluster string) (options []string, wants bool) {
	for i, letter := range cluster {
		name := string(letter)
		options = append(options, "-"+name)
		if !withValue[name] {
			continue
		}
		value := strings.TrimPrefix(cluster[i+len(name):], "=")
		if value == "" {
			return options, true
		}
		return append(options, value), false
	}
	return options, false
}

func optionsWithValue(app *cli.App) map[string]bool {
	names := map[string]bool{}
	for _, c := range app.Commands {
		for _, f := range c.Flags {
			if d, ok := f.(cli.DocGenerationFlag); !ok || !d.TakesValue() {
				continue
			}
			for _, n := range f.Names() {
				names[n] = true
			}
		}
	}
	return names
}
