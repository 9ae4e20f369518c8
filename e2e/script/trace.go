//go:build linux

package script

import (
	"flag"
	"os"
	"os/exec"
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
}

func trace(ts *testscript.TestScript, args []string) {
	usage(ts, len(args) > 1, "trace OUT ARGS...")
	out := ts.MkAbs(args[0])
	t := &tracer{name: args[0], ended: make(chan struct{}), stderr: out + ".err"}
	ts.Check(t.start(out, ts.MkAbs("."), args[1:]))
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

// start starts ksnoop. It writes to the file itself: a copy made here would be
// seen by ksnoop when it traces writes, and make it write again.
func (t *tracer) start(out, dir string, args []string) error {
	stdout, err := os.Create(out)
	if err != nil {
		return err
	}
	defer stdout.Close()
	stderr, err := os.Create(t.stderr)
	if err != nil {
		return err
	}
	defer stderr.Close()
	t.cmd = exec.Command(ksnoop, append([]string{"trace"}, args...)...)
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
		if info, err := os.Stat(out); err == nil && info.Size() > 0 {
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

// signals lists what can be sent to a tracer.
var signals = map[string]syscall.Signal{
	"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL,
}

func traceStop(ts *testscript.TestScript, args []string) {
	flags := flag.NewFlagSet("trace-stop", flag.ContinueOnError)
	signal := flags.String("signal", "INT", "")
	status := flags.Int("status", 0, "")
	ts.Check(flags.Parse(args))
	usage(ts, flags.NArg() < 2 && signals[*signal] != 0, "trace-stop [-signal INT|TERM|HUP|KILL] [-status N] [OUT]")
	t := running(ts).remove(flags.Arg(0))
	usage(ts, t != nil, "trace-stop after trace")
	// An error means that it has ended by itself, and its status tells.
	_ = t.cmd.Process.Signal(signals[*signal])
	select {
	case <-t.ended:
	case <-time.After(patience):
		ts.Fatalf("ksnoop runs %v after SIG%s\n%s", patience, *signal, ts.ReadFile(t.stderr))
	}
	if t.cmd.ProcessState.ExitCode() != *status {
		ts.Fatalf("ksnoop: %s\n%s", t.cmd.ProcessState, ts.ReadFile(t.stderr))
	}
}
