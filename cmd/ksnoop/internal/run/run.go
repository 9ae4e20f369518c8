package run

import (
	"io"
	"os"
	"strconv"
	"time"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/report"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/runtime"
)

// tracing controls a trace: when it begins and ends, and the command that runs
// meanwhile.
type tracing struct {
	bounds  Bounds
	objects int // that are followed, or 0 if the number does not end the trace
	ready   *Ready
	command *Command // nil for none
	cgroup  *os.File // nil for all
	traced  *traced
}

// openTracing opens everything that can be missing, before anything is done in the
// kernel.
func openTracing(o *Options, s *term.Streams) (t *tracing, err error) {
	t = &tracing{bounds: o.Bounds}
	if f := o.Specs.Follow; f != nil {
		t.objects = f.Objects
	}
	if err := checkTree(&o.Programs, o.Command != nil); err != nil {
		return nil, err
	}
	if err := checkProc("/proc/self", o.Programs.TID); err != nil {
		return nil, err
	}
	if o.Command != nil {
		streams := *s
		if o.File.Name == "-" {
			streams.Out = s.Err // the recording has standard output for itself
		}
		if t.command, err = FindProgram(o.Command, o.Own, &streams); err != nil {
			return nil, err
		}
	}
	if t.cgroup, err = openScope(&o.Programs); err != nil {
		return nil, err
	}
	if o.Ready.File != "" && o.File.Name != "" && report.SameFile(o.Ready.File, o.File.Name) {
		return nil, exit.Usagef("--ready-file and the recording are both %s: give each a file of its own", o.File.Name)
	}
	if t.ready, err = OpenReady(o.Ready, s); err != nil {
		return nil, err
	}
	t.traced = openTraced(int(o.Programs.PID), int(o.Programs.TID))
	return t, nil
}

// checkTree returns an error for a tree without a root, or with two.
func checkTree(p *target.Programs, command bool) error {
	if err := p.CheckTree(); err != nil || !p.Tree {
		return err
	}
	switch {
	case p.PID != 0 && command:
		return exit.Usagef("--tree follows one process: that of --pid or the command after --, not both")
	case p.PID == 0 && !command:
		return exit.Usagef("--tree follows a process: name it with --pid, or let ksnoop start a command, as in ksnoop --tree vfs_read -- ls")
	}
	return nil
}

// begin announces that everything is attached, and starts the command and the
// waits that end the trace.
func (t *tracing) begin(session *runtime.Session, stderr io.Writer) error {
	if err := t.ready.Tell(stderr); err != nil {
		return err
	}
	if t.command != nil {
		if err := session.FollowChildren(func() error { return t.command.StartUnless(session.Stopped) }); err != nil {
			return err
		}
		go t.command.Wait(func() {
			if !t.awaitsEnds(session) {
				session.Stop()
			}
		})
	}
	if t.traced != nil {
		if session.Unit().Tree != nil {
			t.traced.deserted = session.Deserted
		}
		go t.traced.wait(func() { session.Stop() })
	}
	if t.bounds.Duration > 0 {
		time.AfterFunc(t.bounds.Duration, func() { session.Stop() })
	}
	return nil
}

// close frees what the trace holds.
func (t *tracing) close() {
	t.ready.Close()
	t.traced.close()
	if t.cgroup != nil {
		t.cgroup.Close()
	}
}

// events returns the source of as many events of a session as are wanted.
func (t *tracing) events(session *runtime.Session, source eventSource) eventSource {
	if t.objects > 0 {
		return &untilEnded{objectSource: session, objects: t.objects}
	}
	if t.bounds.Events == 0 {
		return source
	}
	return &limited{source, t.bounds.Events}
}

// end waits for the command, which continues if tracing has ended before it, and
// returns its status unless there is an error.
func (t *tracing) end(session *runtime.Session, err error) error {
	if t.command == nil {
		return err
	}
	select {
	case <-t.command.Ended:
	default:
		session.Close()
		<-t.command.Ended
	}
	if err == nil && t.command.Status != 0 {
		return exit.StatusError{Status: t.command.Status}
	}
	return err
}

// Bounds limits a trace; 0 means no limit.
type Bounds struct {
	Events   uint64
	Duration time.Duration
}

// MostEvents is the largest value of -n.
const MostEvents = 1 << 62

// ParseTime parses the value of an option that is a time; a plain number is in seconds.
func ParseTime(option, text string) (time.Duration, error) {
	unit := ""
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		unit = "s"
	}
	d, err := time.ParseDuration(text + unit)
	if err != nil || d <= 0 {
		return 0, exit.Usagef("--%s is %q: it must be a time from 1ns to 2562047h, such as 500ms, 2m or 10 (seconds)", option, text)
	}
	return d, nil
}

// eventSource delivers events.
type eventSource interface {
	Read(*runtime.Event) error
	Idle() bool
}

// limited delivers a limited number of events.
type limited struct {
	eventSource
	left uint64
}

func (l *limited) Read(ev *runtime.Event) error {
	if l.left == 0 {
		return io.EOF
	}
	err := l.eventSource.Read(ev)
	if err == nil {
		l.left--
	}
	return err
}

// Idle also returns true at the end, when no more events will come.
func (l *limited) Idle() bool { return l.left == 0 || l.eventSource.Idle() }
