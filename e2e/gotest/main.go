//go:build unix

// Command gotest runs go test so that the last lines of a failed run say what
// failed, why, and how to repeat it:
//
//	go run ./e2e/gotest [-logs DIR] ARGS...
//
// ARGS are those of go test. While it runs, gotest prints the output of failed
// builds, and a line for each package that has ended and each test that has run a
// machine. What the tests print is in files, one for each package that failed and one
// for each test: in DIR, or in a temporary directory that is removed if all pass.
//
// In a log of a test or of one that it is a subtest of, four lines are special:
//
//	kernel: RELEASE, seed N
//	again: COMMAND
//	missing: WHAT
//	waited: SECONDSs
//
// The first says where the test ran, the second how to repeat it, the third what
// could not be tested, which is said at the end, and the fourth how long the test
// waited until it could run a machine, which does not count as its own time.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
)

// usageStatus is the exit status of go test if it could not begin.
const usageStatus = 2

func main() {
	dir, args, err := parseArgs(os.Args[1:])
	status := usageStatus
	if err == nil {
		status, err = goTest(args, dir, os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
	}
	os.Exit(status)
}

// parseArgs returns the directory that -logs names, if that is the first
// argument, and the arguments of go test.
func parseArgs(args []string) (dir string, rest []string, err error) {
	if len(args) == 0 {
		return "", nil, nil
	}
	name, dir, hasValue := strings.Cut(args[0], "=")
	switch {
	case name != "-logs" && name != "--logs":
		return "", args, nil
	case hasValue:
		args = args[1:]
	case len(args) < 2:
		return "", nil, errors.New("-logs needs a directory: gotest [-logs DIR] ARGS")
	default:
		dir, args = args[1], args[2:]
	}
	if dir == "" {
		return "", nil, errors.New("-logs needs a directory that has a name")
	}
	return dir, args, nil
}

// goTest runs go test with args and returns its exit status.
func goTest(args []string, dir string, stdout, stderr io.Writer) (int, error) {
	logs, err := newLogs(dir)
	if err != nil {
		return usageStatus, err
	}
	r := report{newTestRun(), logs, stdout}
	status, err := runCommand(goCommand(args, stderr), r.add)
	if err != nil {
		logs.remove()
		return usageStatus, err
	}
	return r.end(status, keptFlags(args)), nil
}

// A report condenses the output of one go test.
type report struct {
	run    *testRun
	logs   *logs
	stdout io.Writer
}

// add takes in a line that go test prints.
func (r report) add(l []byte) {
	e, ok := parseEvent(l)
	if !ok {
		r.stdout.Write(l)
		return
	}
	r.logs.add(e)
	io.WriteString(r.stdout, r.run.add(e))
}

// end prints the report of a run that ended with an exit status, and returns that of
// gotest. A run without any test has not passed.
func (r report) end(status int, f flags) int {
	var failures []failure
	if status != 0 {
		failures = r.run.failures()
	}
	if err := r.logs.finish(r.run, failures); err != nil {
		fmt.Fprintln(r.stdout, "gotest:", err)
	}
	io.WriteString(r.stdout, slowest(r.run)+notTested(r.run))
	switch {
	case status != 0:
		io.WriteString(r.stdout, closing(failures, f, status, r.logs.dir))
	case r.run.empty():
		fmt.Fprintln(r.stdout, "FAIL: no test was run, as none has such a name")
		status = 1
	}
	if len(failures) == 0 {
		r.logs.remove()
	}
	return status
}

// goCommand returns go test with args, in a process group of its own. Flag -C
// has to be the first.
func goCommand(args []string, stderr io.Writer) *exec.Cmd {
	all := []string{"test"}
	if len(args) > 0 {
		switch name, _, hasValue := strings.Cut(args[0], "="); {
		case name != "-C" && name != "--C":
		case hasValue:
			all, args = append(all, args[0]), args[1:]
		case len(args) > 1:
			all, args = append(all, args[:2]...), args[2:]
		}
	}
	cmd := exec.Command("go", append(append(all, "-json"), args...)...)
	cmd.Stderr = stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// runCommand calls do with each line that cmd prints, and returns its exit
// status. It passes signals on to the whole process group: go test itself does
// not pass them on to the tests, which would live on.
func runCommand(cmd *exec.Cmd, do func(line []byte)) (int, error) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer func() {
		signal.Stop(signals)
		close(signals)
	}()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start go test: %w", err)
	}
	go func() {
		for s := range signals {
			syscall.Kill(-cmd.Process.Pid, s.(syscall.Signal))
		}
	}()
	readErr := eachLine(stdout, do)
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exitStatus(exit), nil
	}
	if err != nil || readErr != nil {
		return 0, fmt.Errorf("run go test: %w", errors.Join(err, readErr))
	}
	return 0, nil
}

// exitStatus returns the exit status of go test, or 1 if a signal ended it.
func exitStatus(exit *exec.ExitError) int {
	if code := exit.ExitCode(); code > 0 {
		return code
	}
	return 1
}
