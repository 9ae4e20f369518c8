package verdict

import (
	"errors"
	"time"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/run"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/compiler/suite"
)

// work waits while the calls are made: by the command, or by others until the end.
func (t *tester) work() error {
	over := make(chan struct{})
	stop := &testStop{units: t.units, over: over}
	stopper := run.StopOnSignal(stop, t.command, t.ready, t.options.Own, func() {})
	for _, u := range t.units {
		if err := u.session.Begin(); err != nil {
			return err
		}
	}
	if err := t.ready.Tell(t.streams.Err); err != nil {
		return exit.StatusError{Status: exit.Failure, Reason: err} // it is not the kernel's fault
	}
	if t.command == nil {
		t.waitOutside(over)
	} else if err := t.runCommand(stop); err != nil {
		return stopper.Explain(err)
	}
	t.settle(over)
	var errs []error
	for _, u := range t.units {
		errs = append(errs, u.session.Stop())
		term.Say(t.streams.Err, u.session.Interrupted())
	}
	for _, u := range t.units {
		errs = append(errs, u.collected())
	}
	return errors.Join(errs...)
}

// settle waits for the calls that come after the command.
func (t *tester) settle(over <-chan struct{}) {
	if t.command != nil && t.suite.Settle > 0 {
		t.exited.Unsettled = !waitFor(t.suite.Settle, over)
	}
}

// waitOutside waits for the end of the time, or for a signal.
func (t *tester) waitOutside(over <-chan struct{}) {
	if t.options.Bounds.Duration == 0 {
		<-over
		return
	}
	begin := time.Now()
	if !waitFor(t.options.Bounds.Duration, over) {
		r := suite.Interrupted(time.Since(begin), t.options.Bounds.Duration)
		t.interrupted = &r
	}
}

// waitFor waits for a duration, or until over is closed. It reports whether the duration
// is over.
func waitFor(d time.Duration, over <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-over:
		return false
	}
}

// patienceToEnd is how long a command may take to end after it was told to.
const patienceToEnd = 5 * time.Second

// runCommand starts the command, now that everything is attached and unless a signal has
// come, and waits until it ends.
func (t *tester) runCommand(stop *testStop) error {
	start := func() error { return t.command.StartUnless(stop.asked.Load) }
	for _, u := range t.units {
		if u.scope == suite.Task {
			unfollowed := start
			start = func() error { return u.session.FollowChildren(unfollowed) }
		}
	}
	begin := time.Now()
	if err := start(); err != nil {
		return err
	}
	go t.command.Wait(func() {})
	var late <-chan time.Time
	if t.job.Timeout > 0 {
		timer := time.NewTimer(t.job.Timeout)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-t.command.Ended:
	case <-late:
		t.exited.TimedOut = true
		t.command.End(patienceToEnd)
	case <-stop.over: // a second signal ends ksnoop itself
		<-t.command.Ended
	}
	t.exited.Took = time.Since(begin)
	t.exited.Status = t.command.Status
	return nil
}
