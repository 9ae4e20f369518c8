//go:build linux

package script

import (
	"flag"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

const ksnoop = "/bin/ksnoop"

// A tracer is a ksnoop in the background.
type tracer struct {
	name   string
	cmd    *exec.Cmd
	ended  chan struct{}
	stderr string // file
	pipe   *pipe  // that it writes to, if not to a file
}

func trace(ts *testscript.TestScript, args []string) {
	flags := flag.NewFlagSet("trace", flag.ContinueOnError)
	piped := flags.Bool("pipe", false, "")
	confine := flags.String("confine", "", "")
	who := flags.String("as", "", "")
	ts.Check(flags.Parse(args))
	args = flags.Args()
	usage(ts, len(args) > 1, "trace [-pipe] [-confine OPTIONS] [-as CAPS] OUT ARGS...")
	out := ts.MkAbs(args[0])
	t := &tracer{name: args[0], ended: make(chan struct{}), stderr: out + ".err"}
	stdout, err := t.open(out, *piped)
	ts.Check(err)
	t.cmd = asUser(*who, traceCommand(*confine, args[1:])...)
	ts.Check(t.start(stdout, ts.MkAbs(".")))
	ts.Defer(func() {
		t.cmd.Process.Kill()
		<-t.ended
	})
	if !t.attached(out) {
		t.cmd.Process.Kill()
		<-t.ended
		ts.Fatalf("ksnoop is not attached: %s\n%s", t.cmd.ProcessState, ts.ReadFile(t.stderr))
	}
	running(ts).add(t)
}

// traceCommand is a command line that traces, with restrictions for confine if
// there are any.
func traceCommand(restrictions string, args []string) []string {
	command := append([]string{ksnoop, "trace"}, args...)
	if restrictions == "" {
		return command
	}
	return slices.Concat([]string{"confine"}, strings.Fields(restrictions), command)
}

// open opens what ksnoop writes to itself: a copy made here would be seen by it
// when it traces writes, and make it write again.
func (t *tracer) open(out string, piped bool) (stdout *os.File, err error) {
	if !piped {
		return os.Create(out)
	}
	t.pipe, stdout, err = newPipe()
	return stdout, err
}

// start starts the command, and closes its output here.
func (t *tracer) start(stdout *os.File, dir string) error {
	defer stdout.Close()
	stderr, err := os.Create(t.stderr)
	if err != nil {
		return err
	}
	defer stderr.Close()
	t.cmd.Dir, t.cmd.Stdout, t.cmd.Stderr = dir, stdout, stderr
	if err := t.cmd.Start(); err != nil {
		return err
	}
	go func() {
		t.cmd.Wait() // the status is looked at by who waits for the end
		close(t.ended)
	}()
	return nil
}

// attached waits until ksnoop has printed something: the first line, the
// header, comes once every probe is attached. It is false if ksnoop ends
// before, or takes too long.
func (t *tracer) attached(out string) bool {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if t.hasPrinted(out) {
			return true
		}
		select {
		case <-t.ended:
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
	return false
}

func (t *tracer) hasPrinted(out string) bool {
	if t.pipe != nil {
		return t.pipe.held()
	}
	info, err := os.Stat(out)
	return err == nil && info.Size() > 0
}

// signals lists what can be sent to a tracer; none waits for one that ends by
// itself.
var signals = map[string]syscall.Signal{
	"none": 0, "INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL,
}

// traceSignal sends a signal to a tracer that is to go on.
func traceSignal(ts *testscript.TestScript, args []string) {
	number := map[string]syscall.Signal{"STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT, "TERM": syscall.SIGTERM}
	usage(ts, len(args) == 2 && number[args[0]] != 0, "trace-signal STOP|CONT|TERM OUT")
	t := running(ts).find(args[1])
	usage(ts, t != nil, "trace-signal after trace "+args[1])
	ts.Check(t.cmd.Process.Signal(number[args[0]]))
}

func traceStop(ts *testscript.TestScript, args []string) {
	flags := flag.NewFlagSet("trace-stop", flag.ContinueOnError)
	signal := flags.String("signal", "INT", "")
	status := flags.Int("status", 0, "")
	ts.Check(flags.Parse(args))
	number, ok := signals[*signal]
	usage(ts, flags.NArg() < 2 && ok, "trace-stop [-signal INT|TERM|HUP|KILL|none] [-status N] [OUT]")
	t := running(ts).remove(flags.Arg(0))
	usage(ts, t != nil, "trace-stop after trace")
	// An error means that it has ended by itself, and its status tells.
	_ = t.cmd.Process.Signal(number)
	select {
	case <-t.ended:
	case <-time.After(patience):
		ts.Fatalf("ksnoop runs %v after SIG%s\n%s", patience, *signal, ts.ReadFile(t.stderr))
	}
	if t.cmd.ProcessState.ExitCode() != *status {
		ts.Fatalf("ksnoop: %s\n%s", t.cmd.ProcessState, ts.ReadFile(t.stderr))
	}
	ts.Check(t.pipe.done())
}
