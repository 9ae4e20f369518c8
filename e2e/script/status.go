//go:build linux

package script

import (
	"errors"
	"os/exec"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
)

// status fails the script unless a command ends with a status.
func status(ts *testscript.TestScript, args []string) {
	usage(ts, len(args) > 1, "status N COMMAND...")
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	cmd := exec.Command(args[1], args[2:]...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		ts.Fatalf("run %s: %v", args[1], err)
	}
	if got := cmd.ProcessState.ExitCode(); got != want {
		ts.Fatalf("status %d, want %d\n%s", got, want, out)
	}
}
