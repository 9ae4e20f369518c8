//go:build linux

package script

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

const ksnoop = "/bin/ksnoop"

// A tracer is a ksnoop in the background.
type tracer struct {
	name   string
	cmd    *exec.Cmd
	ended  chan struct{}
	stderr string // file
	pipe   *pipe  // its standard output, if not a file

	recording string   // file, if the trace is to be replayed
	look      []string // the options of replay
}

func trace(ts *testscript.TestScript, args []string) {
	flags := flag.NewFlagSet("trace", flag.ContinueOnError)
	piped := flags.Bool("pipe", false, "")
	confine := flags.String("confine", "", "")
	who := flags.String("as", "", "")
	command := flags.String("command", "trace", "")
	ts.Check(flags.Parse(args))
	args = flags.Args()
	usage(ts, len(args) > 1, "trace [-pipe] [-confine OPTIONS] [-as CAPS] [-command NAME] OUT ARGS...")
	out := ts.MkAbs(args[0])
	t := &tracer{name: args[0], ended: make(chan struct{}), stderr: out + ".err"}
	stdout, err := t.open(out, *piped)
	ts.Check(err)
	args = args[1:]
	if !*piped && *confine == "" && *who == "" {
		args = t.record(ts, *command, args)
	}
	t.cmd = asUser(*who, traceCommand(*confine, *command, args)...)
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
	ts.Check(running(ts).add(t))
}

// traceCommand returns the line of a command that traces, through confine if there are
// restrictions.
func traceCommand(restrictions, name string, args []string) []string {
	command := append([]string{ksnoop, name}, args...)
	if restrictions == "" {
		return command
	}
	return slices.Concat([]string{"confine"}, strings.Fields(restrictions), command)
}

// open opens the file or pipe that ksnoop writes to directly. If this process
// copied the output, ksnoop would see the copying when it traces writes, and
// write again.
func (t *tracer) open(out string, piped bool) (stdout *os.File, err error) {
	if !piped {
		return os.Create(out)
	}
	t.pipe, stdout, err = newPipe()
	return stdout, err
}

// start starts the command, and closes its output in this process.
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
		t.cmd.Wait() // trace-stop checks the status
		close(t.ended)
	}()
	return nil
}

// attached waits until ksnoop has printed something: the first line, the
// header, comes once every probe is attached. It returns false if ksnoop ends
// without it, or takes too long.
func (t *tracer) attached(out string) bool {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if t.hasPrinted(out) {
			return true
		}
		select {
		case <-t.ended:
			return t.hasPrinted(out) // a short command may be over already
		case <-time.After(pause):
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

// signals lists the signals that trace-stop can send to a tracer. none waits
// for a tracer that ends by itself.
var signals = map[string]syscall.Signal{
	"none": 0, "INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL,
}

// traceSignal sends a signal to a tracer. It waits for it to stop, and for nothing else.
func traceSignal(ts *testscript.TestScript, args []string) {
	number := map[string]syscall.Signal{"STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT, "TERM": syscall.SIGTERM}
	usage(ts, len(args) == 2 && number[args[0]] != 0, "trace-signal STOP|CONT|TERM OUT")
	t := running(ts).find(args[1])
	usage(ts, t != nil, "trace-signal after trace "+args[1])
	ts.Check(t.cmd.Process.Signal(number[args[0]]))
	if args[0] == "STOP" {
		ts.Check(waitStopped(t.cmd.Process.Pid))
	}
}

// waitStopped waits until all threads of a child have stopped. The one that the kernel wakes
// for the signal stops the others, and each of them works on until it is run again.
func waitStopped(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
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
	// An error means that the tracer has ended by itself. The check of its
	// status follows.
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
	if *status == 0 {
		t.replayed(ts, ts.MkAbs(t.name))
	}
}

// asUser returns a command that runs through as, or directly if who is empty.
func asUser(who string, command ...string) *exec.Cmd {
	if who != "" {
		command = slices.Concat([]string{"as", who}, command)
	}
	return exec.Command(command[0], command[1:]...)
}
