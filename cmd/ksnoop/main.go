// Command ksnoop traces kernel functions and shows the data that flows through
// them.
package main

import (
	"errors"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/run"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
)

// version is set at link time.
var version string

func main() {
	if os.Getenv("GOGC") == "" {
		thriftyAfterFirst()
	}
	os.Exit(ksnoopStatus(os.Args, os.Stdin, term.NewStdout(os.Stdout), os.Stderr))
}

// thriftyAfterFirst lowers the limit of garbage after the first collection, which
// happens at 4 MB. Most of a larger heap is the kernel's types, which are read once, and with
// the default as much garbage again would be allowed. With the lower limit from the beginning,
// collections of a heap of 1 MB would take a tenth of a start.
func thriftyAfterFirst() {
	type sentinel struct{ _ *byte }
	runtime.AddCleanup(new(sentinel), func(percent int) { debug.SetGCPercent(percent) }, 25)
}

// ksnoopStatus executes a command line, with the program's name first, and returns
// the exit status.
func ksnoopStatus(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	e := &environment{own: run.Inherit(), Streams: term.Streams{In: stdin, Out: term.NewPlain(stdout), Err: term.NewPlain(stderr)}}
	if err := e.execute(args[1:]); err != nil {
		return e.fail(err)
	}
	return 0
}

// fail prints an error and returns its exit status.
func (e *environment) fail(err error) int {
	status := exit.Failure
	if ended := (exit.StatusError{}); errors.As(err, &ended) {
		status, err = ended.Status, ended.Reason
	} else if exit.IsUsage(err) {
		status = exit.Usage
	} else if errors.Is(err, term.ErrReaderGone) {
		status = exit.Pipe
	}
	switch {
	case err == nil:
	case e.errorFormat == "json":
		term.PrintJSONErrors(e.Err, err, status)
	default:
		term.PrintErrors(e.Err, err)
	}
	return status
}

func (e *environment) execute(args []string) error {
	err := runApp(args, e)
	return target.LostQuotes(err, e.texts, e.parse, e.Out)
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
