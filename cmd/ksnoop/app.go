package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/getopt"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/run"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
)

// environment is what a command line runs in, with the options of every command.
type environment struct {
	term.Streams
	own         run.Inherited
	args        []string // as typed
	line        *getopt.Line
	operands    []string     // without the name of a command
	texts       []string     // the specs among operands, once a command has read them
	parse       target.Parse // parses one of texts
	named       bool         // whether a command was named
	help        bool
	version     bool
	errorFormat string // one of errorFormats
}

// newApp returns the commands and options for one command line, whose values they
// hold.
func newApp(e *environment) *cli.App {
	app := &cli.App{
		Name:        "ksnoop",
		Usage:       "show the data that flows through kernel functions",
		UsageText:   synopsis,
		Description: specExamples,
		Version:     buildVersion(),
		Flags: []cli.Flag{
			helpFlag(&e.help),
			onOffFlag("version V", "print the version", &e.version),
			choiceFlag("errors", "print errors as `FORMAT`: %s", &e.errorFormat, errorFormats),
		},
		HideHelp:       true, // help, its option and that of the version are above
		HideVersion:    true,
		Writer:         &firstError{w: e.Out},
		ErrWriter:      e.Err,
		OnUsageError:   e.misused,
		ExitErrHandler: func(*cli.Context, error) {}, // main prints it

		DisableSliceFlagSeparator: true, // a comma is a part of a value
		Action: func(c *cli.Context) error {
			cli.ShowVersion(c)
			return nil
		},
	}
	app.Commands = []*cli.Command{
		traceCommand(e), printCommand(e), watchCommand(e), followCommand(e), recordCommand(e), replayCommand(e), infoCommand(e), listCommand(e), compileCommand(e), dumpCommand(e),
		doctorCommand(e), testCommand(e), checkCommand(e), completionCommand(e), helpCommand(), completeCommand(e),
	}
	for _, c := range app.Commands {
		c.OnUsageError = e.misused
		c.HideHelp, c.HideHelpCommand = true, true
	}
	app.Setup()
	return app
}

// errorFormats are the formats of errors, the default first.
var errorFormats = []string{"text", "json"}

// runApp runs a command line, without the program's name.
func runApp(args []string, e *environment) error {
	app := newApp(e)
	for _, c := range app.Commands {
		c.Before = e.sparing(c.Before)
	}
	err := app.Run(e.words(app, args))
	if out := app.Writer.(*firstError); err == nil && out.err != nil {
		err = fmt.Errorf("write the help: %w", out.err)
	}
	return err
}

// words returns a command line as package cli reads it: the options of every command
// before the name of one, its own before the operands. So mistakes in the former are
// found first, and other mistakes are printed in the format of --errors.
func (e *environment) words(app *cli.App, args []string) []string {
	e.args, e.line = args, &getopt.Line{Operands: args}
	if len(args) == 0 || args[0] != completeWord {
		e.line = getopt.Split(args, finder(app))
	}
	c := app.Command("trace")
	e.operands = e.line.Operands
	if len(e.operands) > 0 {
		if named := app.Command(e.operands[0]); named != nil {
			c, e.named, e.operands = named, true, e.operands[1:]
		}
	}
	every, own := divide(e.line.Options, app.Flags)
	version, help := isOn(every, "version"), isOn(every, "help")
	if version || c.Name == "help" && len(e.operands) > 0 { // --help makes no difference to it
		help, every = false, slices.DeleteFunc(every, func(o getopt.Given) bool { return o.Name == "help" })
	}
	words := append([]string{app.Name}, respelled(every, app.Flags)...)
	if version || help && !e.named {
		return words
	}
	words = append(append(words, c.Name), respelled(own, c.Flags)...)
	words = append(append(words, "--"), e.operands...)
	if e.line.Behind != nil {
		words = append(append(words, "--"), e.line.Behind...)
	}
	return words
}

// divide returns the options that are among flags, and the others.
func divide(options []getopt.Given, flags []cli.Flag) (own, others []getopt.Given) {
	for _, o := range options {
		if flagOf(flags, o) != nil {
			own = append(own, o)
		} else {
			others = append(others, o)
		}
	}
	return own, others
}

// isOn reports whether an option without a value was given, and not as =false.
func isOn(options []getopt.Given, name string) (on bool) {
	for _, o := range options {
		if o.Name == name {
			value, err := strconv.ParseBool(o.Value)
			on = value || err != nil
		}
	}
	return on
}

// respelled returns options as package cli reads them. An option that the command does not
// have, or that lacks its value, becomes a word that package cli refuses: otherwise it
// would take --p for -p, and the next word for the value.
func respelled(options []getopt.Given, flags []cli.Flag) (words []string) {
	for _, o := range options {
		word := "---"
		if f := flagOf(flags, o); f != nil && !o.Missing() {
			word = "--" + f.Names()[0]
			if o.HasValue {
				word += "=" + o.Value
			}
		}
		words = append(words, word)
	}
	return words
}

// firstError keeps the first error of a writer for callers that do not check it.
type firstError struct {
	w   io.Writer
	err error
}

func (f *firstError) Unwrap() io.Writer { return f.w }

func (f *firstError) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	if f.err == nil {
		f.err = err
	}
	return n, err
}

// finder returns a function that finds an option among those of all commands. Which
// command a line is for is known only after splitting it. TestOptionsAgree verifies
// that this suffices.
func finder(app *cli.App) func(name string) (getopt.Option, bool) {
	flags := slices.Clone(app.Flags)
	for _, c := range app.Commands {
		flags = append(flags, c.Flags...)
	}
	return func(name string) (getopt.Option, bool) {
		for _, f := range flags {
			if names := f.Names(); slices.Contains(names, name) {
				return getopt.Option{Name: names[0], TakesValue: takesValue(f)}, true
			}
		}
		return getopt.Option{}, false
	}
}

func takesValue(f cli.Flag) bool { return f.(cli.DocGenerationFlag).TakesValue() }

// flagOf returns the flag of a command for an option, or nil. A letter is looked up in
// the command alone: -n is not the same option in all commands.
func flagOf(flags []cli.Flag, o getopt.Given) (named cli.Flag) {
	letter := strings.TrimPrefix(o.Spelled, "-")
	for _, f := range flags {
		names := f.Names()
		if slices.Contains(names[1:], letter) {
			return f
		}
		if names[0] == o.Name {
			named = f
		}
	}
	return named
}

// commandWords returns the operands of a command, and the words after the -- of its
// command line, or nil if there is no --.
func commandWords(c *cli.Context) (operands, behind []string) {
	all := c.Args().Slice()
	if i := slices.Index(all, "--"); i >= 0 {
		return all[:i:i], all[i+1:]
	}
	return all, nil
}

// allWords returns the operands of a command for which -- means that no options
// follow.
func allWords(c *cli.Context) []string {
	operands, behind := commandWords(c)
	return append(operands, behind...)
}
