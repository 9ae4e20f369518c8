// Command ksnoop traces kernel functions and shows the data that flows through
// them.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// version is set at link time.
var version string

// Exit statuses.
const (
	exitFailure = 1                          // at run time
	exitUsage   = 2                          // a wrong command line or spec
	exitPipe    = 128 + int(syscall.SIGPIPE) // the reader of stdout went away
)

func main() {
	// Most of the heap is the kernel's types, read once: the default would
	// let as much garbage gather again.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(25)
	}
	os.Exit(run(os.Args, os.Stdin, newStdout(os.Stdout), os.Stderr))
}

// run executes a command line, with the program's name first, and is the exit
// status.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	stdout, stderr = &plainWriter{w: stdout}, &plainWriter{w: stderr}
	if err := execute(args, stdin, stdout, stderr); err != nil {
		return report(stderr, err)
	}
	return 0
}

// report prints an error and returns the exit status that it means.
func report(stderr io.Writer, err error) int {
	if ended := (statusError{}); errors.As(err, &ended) {
		if ended.reason != nil {
			printErrors(stderr, ended.reason)
		}
		return ended.status
	}
	printErrors(stderr, err)
	switch {
	case isUsage(err):
		return exitUsage
	case errors.Is(err, errReaderGone):
		return exitPipe
	}
	return exitFailure
}

func execute(args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	cli.VersionFlag = &cli.BoolFlag{Name: "version", Aliases: []string{"V"}, Usage: "print the version", DisableDefaultText: true}
	app := newApp(stdout, stderr)
	app.Reader = stdin
	lineIn(app).own = keepInherited()
	ordered, err := parseArgs(app, args[1:])
	if err != nil {
		return err
	}
	return app.Run(append(args[:1:1], ordered...))
}

func newApp(stdout, stderr io.Writer) *cli.App {
	app := &cli.App{
		Name:                      "ksnoop",
		Usage:                     "show the data that flows through kernel functions",
		UsageText:                 "ksnoop [OPTIONS] [trace|info|list|compile] SPEC...\n   ksnoop [OPTIONS] -f FILE [SPEC...]\n   ksnoop [OPTIONS] SPEC... -- COMMAND [ARGUMENT...]\n   ksnoop dump TYPE < bytes\n   ksnoop doctor",
		Description:               specExamples,
		Version:                   buildVersion(),
		Commands:                  []*cli.Command{traceCommand(), infoCommand(), listCommand(), compileCommand(), dumpCommand(), doctorCommand()},
		Metadata:                  map[string]any{lineKey: &line{}},
		Writer:                    stdout,
		ErrWriter:                 stderr,
		DisableSliceFlagSeparator: true,
		HideHelpCommand:           true,
		OnUsageError:              onUsageError,
		ExitErrHandler:            func(*cli.Context, error) {}, // run reports errors
	}
	for _, c := range app.Commands {
		c.OnUsageError = onUsageError
		for _, f := range c.Flags {
			if f, ok := f.(*cli.BoolFlag); ok {
				f.DisableDefaultText = true // it is off unless it is given
			}
		}
	}
	return app
}

func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// usageError is a mistake on the command line.
type usageError struct{ error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

func onUsageError(_ *cli.Context, err error, _ bool) error { return usageError{err} }

func isUsage(err error) bool {
	var usage usageError
	var inSpec *spec.Error
	return errors.As(err, &usage) || errors.As(err, &inSpec)
}

// printErrors prints each of the errors that were joined into err. Specs of one
// function may all have the same. A reader who has seen enough needs no
// message.
func printErrors(w io.Writer, err error) {
	last := ""
	for _, e := range split(err) {
		if text := e.Error(); text != last && !errors.Is(e, errReaderGone) {
			fmt.Fprintf(w, "ksnoop: %s\n", text)
			last = text
		}
	}
}

// split is the errors that were joined into err.
func split(err error) []error {
	if usage, ok := err.(usageError); ok {
		err = usage.error
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var errs []error
	for _, e := range joined.Unwrap() {
		errs = append(errs, split(e)...)
	}
	return errs
}
