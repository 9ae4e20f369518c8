package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/getopt"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/run"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
)

// environment is what a command line runs in, with the options of every command.
type environment struct {
	term.Streams
	own         run.Inherited
	args        []string // as typed
	operands    []string // without the name of a command
	named       bool     // whether a command was named
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
		Writer:    e.Out,
		ErrWriter: e.Err,
	}
	app.Commands = []*cli.Command{
		traceCommand(e), printCommand(e), watchCommand(e), followCommand(e), recordCommand(e), replayCommand(e), infoCommand(e), listCommand(e), compileCommand(e), dumpCommand(e),
		doctorCommand(e), testCommand(e), checkCommand(e), completionCommand(e), helpCommand(), completeCommand(e),
	}
	for _, c := range app.Commands {
		c.HelpName = app.Name + " " + c.Name
		c.OnUsageError = misused
	}
	return app
}

// errorFormats are the formats of errors, the default first.
var errorFormats = []string{"text", "json"}

// runApp runs a command line, without the program's name.
func runApp(args []string, e *environment) error {
	out := &firstError{w: e.Out}
	app := newApp(e)
	app.Writer = out
	e.args = args
	var err error
	if len(args) > 0 && args[0] == completeWord {
		err = e.runCommand(app, app.Command(completeWord), &getopt.Line{Operands: args[1:]})
	} else {
		err = e.runLine(app, getopt.Split(args, finder(app)))
	}
	if err == nil && out.err != nil {
		err = fmt.Errorf("write the help: %w", out.err)
	}
	return err
}

// runLine runs the command of a line. The options of every command are read before its
// own: mistakes in these are printed in the format for errors, and help and the version
// even if something else is wrong.
func (e *environment) runLine(app *cli.App, line *getopt.Line) error {
	every := &cli.Command{HelpName: app.Name, Flags: app.Flags, OnUsageError: misused, Action: func(*cli.Context) error { return nil }}
	options, own := divide(line.Options, every)
	if err := e.runCommand(app, every, &getopt.Line{Options: options}); err != nil {
		return err
	}
	c := app.Command("trace")
	e.operands = line.Operands
	if len(line.Operands) > 0 {
		if named := app.Command(line.Operands[0]); named != nil {
			c, e.named, e.operands = named, true, line.Operands[1:]
		}
	}
	switch {
	case e.version:
		fmt.Fprintf(app.Writer, "%s version %s\n", app.Name, app.Version)
		return nil
	case c.Name == "help" && len(e.operands) > 0: // --help changes nothing of it
	case e.help && e.named:
		printHelp(app.Writer, c)
		return nil
	case e.help:
		printHelp(app.Writer, app)
		return nil
	}
	return e.runCommand(app, c, &getopt.Line{Options: own, Operands: e.operands, Behind: line.Behind})
}

// divide returns the options that a command has, and the others.
func divide(options []getopt.Given, c *cli.Command) (own, others []getopt.Given) {
	for _, o := range options {
		if flagOf(c, o) != nil {
			own = append(own, o)
		} else {
			others = append(others, o)
		}
	}
	return own, others
}

// runCommand runs a command with the words of a line. App.Run would do the same, but can
// also print help by text/template. That finds methods by their names, so the linker
// would keep every exported method of the program.
func (e *environment) runCommand(app *cli.App, c *cli.Command, line *getopt.Line) error {
	set := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	var given []cli.Flag
	for _, o := range line.Options {
		f := flagOf(c, o)
		if err := e.checkOption(app, c, f, o); err != nil {
			return err
		}
		if !slices.Contains(given, f) {
			if err := f.Apply(set); err != nil {
				return err
			}
			given = append(given, f)
		}
	}
	ctx := cli.NewContext(app, set, nil)
	ctx.Command = c
	for _, o := range line.Options {
		f := flagOf(c, o)
		if err := set.Parse([]string{respelled(o, f)}); err != nil {
			return c.OnUsageError(ctx, err, true)
		}
		if err := f.(cli.ActionableFlag).RunAction(ctx); err != nil { // also for a value that another one follows
			return err
		}
	}
	words := append([]string{"--"}, line.Operands...)
	if line.Behind != nil {
		words = append(append(words, "--"), line.Behind...)
	}
	if err := set.Parse(words); err != nil {
		return c.OnUsageError(ctx, err, true)
	}
	return c.Action(ctx)
}

func (f *firstError) Unwrap() io.Writer { return f.w }

// firstError keeps the first error of a writer for callers that do not check it.
type firstError struct {
	w   io.Writer
	err error
}

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
			if long, short := flagNames(f); name == long || slices.Contains(short, name) {
				return getopt.Option{Name: long, TakesValue: takesValue(f)}, true
			}
		}
		return getopt.Option{}, false
	}
}

func takesValue(f cli.Flag) bool {
	documented, ok := f.(cli.DocGenerationFlag)
	return ok && documented.TakesValue()
}

// flagOf returns the flag of a command for an option, or nil. A letter is that of the
// command's own option: -n is not the same in all.
func flagOf(c *cli.Command, o getopt.Given) (named cli.Flag) {
	letter := strings.TrimPrefix(o.Spelled, "-")
	for _, f := range c.Flags {
		long, short := flagNames(f)
		if slices.Contains(short, letter) {
			return f
		}
		if long == o.Name {
			named = f
		}
	}
	return named
}

// respelled returns an option as package cli reads it.
func respelled(o getopt.Given, f cli.Flag) string {
	name, _ := flagNames(f)
	if o.HasValue {
		name += "=" + o.Value
	}
	return "--" + name
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
