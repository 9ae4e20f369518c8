package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"
)

// draft is a command line as far as it can be read before its subcommand is known.
type draft struct {
	options  map[string]string // by their long names, with the last value
	operands []string
	behind   []string // behind --; nil: that is not there
}

// readDraft reads a command line with the options of all subcommands. As with
// getopt, they may stand anywhere; what is wrong is left to [readArgs].
func readDraft(args []string) draft {
	all := optionSet(helpFlag, versionFlag)
	for _, s := range subcommands() {
		all.AddFlagSet(optionSet(s.flags...))
	}
	all.ParseErrorsAllowlist.UnknownFlags = true
	d := draft{options: map[string]string{}}
	_ = all.ParseAll(args, func(o *pflag.Flag, value string) error {
		d.options[o.Name] = value
		return nil
	})
	d.operands = all.Args()
	if n := all.ArgsLenAtDash(); n >= 0 {
		d.operands, d.behind = d.operands[:n:n], d.operands[n:]
	}
	return d
}

func (d draft) has(option string) bool {
	_, given := d.options[option]
	return given
}

// readArgs understands a command line: what is to be done, and with what.
func readArgs(args []string) (action, *invocation, error) {
	d := readDraft(args)
	if topic, err := d.topic(); topic != nil || err != nil {
		return topic, &invocation{}, err
	}
	s := subcommandOf(d.operands)
	c := &invocation{options: optionSet(s.flags...), operands: d.operands, behind: d.behind}
	if err := c.options.Parse(args); err != nil {
		return nil, nil, misread(err, s, d.operands)
	}
	if i := slices.IndexFunc(args[:len(args)-len(d.behind)], isPassedOver); i >= 0 {
		return nil, nil, unknownOption(s, args[i])
	}
	if len(c.operands) > 0 && c.operands[0] == s.name {
		c.operands = c.operands[1:]
	}
	if !s.takesCommand() {
		c.operands, c.behind = append(c.operands, c.behind...), nil
	}
	return s.run, c, c.check(s)
}

// topic prints what is asked for instead of anything else: the version, or help;
// nil: nothing is.
func (d draft) topic() (action, error) {
	switch {
	case d.has("version"):
		return printVersion, nil
	case len(d.operands) > 0 && d.operands[0] == "help":
		return helpOn(d.operands[1:])
	case d.has("help") && len(d.operands) > 0 && findSubcommand(d.operands[0]) != nil:
		return findSubcommand(d.operands[0]).help, nil
	case d.has("help"):
		return overview, nil
	}
	return nil, nil
}

// isPassedOver is about what pflag leaves to the tests of Go programs.
func isPassedOver(arg string) bool { return strings.HasPrefix(arg, "-test.") }

func printVersion(c *invocation) error {
	if _, err := fmt.Fprintf(c.stdout, "ksnoop version %s\n", buildVersion()); err != nil {
		return fmt.Errorf("write the version: %w", err)
	}
	return nil
}

// helpOn is the help on a topic, the first of the operands.
func helpOn(topics []string) (action, error) {
	if len(topics) == 0 {
		return overview, nil
	}
	if s := findSubcommand(topics[0]); s != nil {
		return s.help, nil
	}
	if topics[0] == "spec" {
		return languageHelp, nil
	}
	return nil, unknownTopic(topics[0])
}

// misread says what is wrong with the options of a subcommand.
func misread(err error, s *subcommand, operands []string) error {
	var unknown *pflag.NotExistError
	var syntax *pflag.InvalidSyntaxError
	var empty *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown) || errors.As(err, &syntax):
		if len(operands) > 0 && operands[0] != s.name {
			if meant := unknownCommand(operands[0]); meant != nil {
				return meant
			}
		}
		return unknownOption(s, spelling(unknown, syntax))
	case errors.As(err, &empty):
		return noValue(s, empty.GetFlag().Name)
	case errors.As(err, &invalid): // all others take any text
		return usagef("--%s is %q: it takes no value, or true or false", invalid.GetFlag().Name, invalid.GetValue())
	}
	return usageError{err}
}

// spelling is an option as it was given.
func spelling(unknown *pflag.NotExistError, syntax *pflag.InvalidSyntaxError) string {
	if syntax != nil {
		return syntax.GetSpecifiedFlag()
	}
	if letters := unknown.GetSpecifiedShortnames(); letters != "" {
		_, size := utf8.DecodeRuneInString(letters)
		return "-" + letters[:size]
	}
	return "--" + unknown.GetSpecifiedName()
}

// noValue refuses an option without its value.
func noValue(s *subcommand, option string) error {
	if option == "file" {
		return usagef("--file names no file: as in ksnoop -f probes.txt")
	}
	return usagef("--%s has no value: ksnoop %s --help explains it", option, s.name)
}
