//go:build linux

package script

import (
	"errors"
	"os/exec"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
)

// status runs a command, which must end with a certain exit status. Its output
// is available to the commands stdout and stderr.
func status(ts *testscript.TestScript, args []string) {
	usage(ts, len(args) > 1, "status N COMMAND...")
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("run %s: %v", args[1], err)
	}
	if got != want {
		ts.Fatalf("status %d, want %d", got, want)
	}
}
