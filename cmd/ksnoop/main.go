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
		return fail(stderr, err)
	}
	return 0
}

// fail prints an error and returns the exit status that it means.
func fail(stderr io.Writer, err error) int {
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
	own := keepInherited()
	if len(args) > 1 && args[1] == completeWord {
		return printCompletions(args[2:], stdout)
	}
	do, c, err := readArgs(args[1:])
	if err != nil {
		return err
	}
	c.own, c.stdin, c.stdout, c.stderr = own, stdin, stdout, stderr
	err = do(c)
	if lost := lostQuotes(c.operands, redirectedTo(stdout)); lost != nil && isUsage(err) {
		return lost
	}
	return err
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
