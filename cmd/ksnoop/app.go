package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/getopt"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/run"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
)

// environment is what a command line runs in.
type environment struct {
	term.Streams
	own      run.Inherited
	args     []string // as typed
	operands []string // without the name of a command
	named    bool     // whether a command was named
	given    []string // long names of the options
	// errorFormat is the format of errors: "json", or anything else for text.
	errorFormat string
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
		Flags:       []cli.Flag{cli.HelpFlag, cli.VersionFlag, errorsFlag()},
		Writer:      e.Out,
		ErrWriter:   e.Err,
	}
	app.Commands = []*cli.Command{
		traceCommand(e), printCommand(e), watchCommand(e), followCommand(e), recordCommand(e), replayCommand(e), infoCommand(e), listCommand(e), compileCommand(e), dumpCommand(e),
		doctorCommand(e), testCommand(e), checkCommand(e), completionCommand(e), helpCommand(), completeCommand(e),
	}
	for _, c := range app.Commands {
		c.HelpName = app.Name + " " + c.Name
		c.OnUsageError = e.misread
	}
	return app
}

func init() {
	cli.VersionFlag = &cli.BoolFlag{Name: "version", Aliases: []string{"V"}, Usage: "print the version", DisableDefaultText: true}
}

// runApp runs a command line, without the program's name.
func runApp(args []string, e *environment) error {
	out := &firstError{w: e.Out}
	app := newApp(e)
	app.Writer = out
	e.args = args
	var err error
	if len(args) > 0 && args[0] == completeWord {
		err = e.run(app, app.Command(completeWord), append([]string{"--"}, args[1:]...))
	} else {
		line := getopt.Split(args, finder(app))
		if err = e.takeErrorFormat(line); err == nil {
			err = e.runLine(app, line)
		}
	}
	if err == nil && out.err != nil {
		err = fmt.Errorf("write the help: %w", out.err)
	}
	return err
}

// errorsFlag returns the option for the format of errors, which holds for every command.
func errorsFlag() cli.Flag {
	format := errorFormats[0]
	return textFlag("errors", "print errors as `FORMAT`: "+strings.Join(errorFormats, " or "), &format)
}

// errorFormats are the formats of errors, the default first.
var errorFormats = []string{"text", "json"}

// takeErrorFormat removes the option for the format of errors from a line, before any
// command reads its own: mistakes in these are printed so, too.
func (e *environment) takeErrorFormat(line *getopt.Line) error {
	var others []getopt.Given
	for _, o := range line.Options {
		switch {
		case o.Name != "errors":
			others = append(others, o)
		case !slices.Contains(errorFormats, o.Value):
			return exit.UnknownName("--errors", o.Value, errorFormats)
		default:
			e.errorFormat = o.Value
		}
	}
	line.Options = others
	return nil
}

// runLine runs the command of a line. Help and the version are printed even if
// something else is wrong.
func (e *environment) runLine(app *cli.App, line *getopt.Line) error {
	first := ""
	if len(line.Operands) > 0 {
		first = line.Operands[0]
	}
	named := app.Command(first)
	switch {
	case line.Has("version"):
		fmt.Fprintf(app.Writer, "%s version %s\n", app.Name, app.Version)
		return nil
	case first == "help":
		e.operands, e.named = line.Operands[1:], true
		line.Options = slices.DeleteFunc(line.Options, func(o getopt.Given) bool { return o.Name == "help" })
		return e.run(app, named, e.arrange(line, named))
	case line.Has("help") && named != nil:
		printHelp(app.Writer, named)
		return nil
	case line.Has("help"):
		printHelp(app.Writer, app)
		return nil
	}
	c := app.Command("trace")
	e.operands, e.named = line.Operands, named != nil
	if e.named {
		c, e.operands = named, line.Operands[1:]
	}
	return e.run(app, c, e.arrange(line, c))
}

// run runs a command with its options and operands. App.Run would do the same, but can
// also print help by text/template. That finds methods by their names, so the linker
// would keep every exported method of the program.
func (e *environment) run(app *cli.App, c *cli.Command, words []string) error {
	set := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	given := slices.DeleteFunc(slices.Clone(c.Flags), func(f cli.Flag) bool {
		name, _ := flagNames(f)
		return !slices.Contains(e.given, name)
	})
	for _, f := range given {
		if err := f.Apply(set); err != nil {
			return err
		}
	}
	ctx := cli.NewContext(app, set, nil)
	ctx.Command = c
	if err := set.Parse(words); err != nil {
		return c.OnUsageError(ctx, err, true)
	}
	for _, f := range given {
		if err := f.(cli.ActionableFlag).RunAction(ctx); err != nil {
			return err
		}
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

// arrange returns the words of a line for a command in the order that package cli
// reads: options with their long names, and the operands after --.
func (e *environment) arrange(line *getopt.Line, c *cli.Command) []string {
	var words []string
	for _, o := range line.Options {
		o.Name = ownName(o, c)
		e.given = append(e.given, o.Name)
		words = append(words, respelled(o, c))
		if o.Missing() {
			return words // no words that could be taken for the value
		}
	}
	words = append(append(words, "--"), e.operands...)
	if line.Behind != nil {
		words = append(append(words, "--"), line.Behind...)
	}
	return words
}

// ownName returns the long name of an option. A letter is that of the command's own
// option: -n is not the same in all.
func ownName(o getopt.Given, c *cli.Command) string {
	for _, f := range c.Flags {
		if long, short := flagNames(f); slices.Contains(short, strings.TrimPrefix(o.Spelled, "-")) {
			return long
		}
	}
	return o.Name
}

// respelled returns an option as package cli reads it, or as it was given if the
// command has no such option.
func respelled(o getopt.Given, c *cli.Command) string {
	has := slices.ContainsFunc(c.Flags, func(f cli.Flag) bool {
		name, _ := flagNames(f)
		return name == o.Name
	})
	switch {
	case !has:
		return o.Spelled
	case o.HasValue:
		return "--" + o.Name + "=" + o.Value
	}
	return "--" + o.Name
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
