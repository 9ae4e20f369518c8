package main

import (
	"errors"
	"time"

	"github.com/ksnoop/ksnoop/compiler/suite"
	"github.com/ksnoop/ksnoop/runtime"
)

// work lets the calls be made: by the command, or by others until the end.
func (t *tester) work() error {
	over := make(chan struct{})
	stop := &testStop{units: t.units, over: over}
	stopOnSignal(stop, t.command, func() {})
	if err := t.ready.tell(); err != nil {
		return err
	}
	if t.command == nil {
		t.waitOutside(over)
	} else if err := t.runCommand(over); err != nil {
		return err
	}
	if t.suite.Settle > 0 && !stop.asked.Load() {
		waitFor(t.suite.Settle, over)
	}
	var errs []error
	for _, u := range t.units {
		errs = append(errs, u.session.Stop())
	}
	for _, u := range t.units {
		errs = append(errs, u.collected())
	}
	return errors.Join(errs...)
}

// waitOutside waits for the end of the time, or for a signal.
func (t *tester) waitOutside(over <-chan struct{}) {
	if t.bounds.duration > 0 {
		waitFor(t.bounds.duration, over)
		return
	}
	<-over
}

// waitFor waits for a time, or until everything is over.
func waitFor(d time.Duration, over <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-over:
	}
}

// patienceToEnd is how long a command has to end that is told to.
const patienceToEnd = 5 * time.Second

// runCommand starts the command, now that everything is attached, and waits
// until it ends.
func (t *tester) runCommand(over <-chan struct{}) error {
	start := t.command.start
	for _, u := range t.units {
		if u.scope == suite.Task {
			start = startFollowed(u.session, start)
		}
	}
	begin := time.Now()
	if err := start(); err != nil {
		return err
	}
	go t.command.wait(func() {})
	var late <-chan time.Time
	if t.job.Timeout > 0 {
		timer := time.NewTimer(t.job.Timeout)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-t.command.ended:
	case <-late:
		t.exited.TimedOut = true
		t.command.end(patienceToEnd)
	case <-over: // a second signal ends ksnoop itself
		<-t.command.ended
	}
	t.exited.Took = time.Since(begin)
	t.exited.Status = t.command.status
	return nil
}

// startFollowed lets a session follow what start starts.
func startFollowed(s *runtime.Session, start func() error) func() error {
	return func() error { return s.FollowChildren(start) }
}
