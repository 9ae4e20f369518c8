package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/runtime"
)

// interrupted is the end of a trace by a signal before it began: its status is
// that of a process that the signal killed.
type interrupted struct{ signal syscall.Signal }

func (e interrupted) Error() string {
	return fmt.Sprintf("ended by %s while attaching: nothing was traced", unix.SignalName(e.signal))
}

func (e interrupted) ExitCode() int { return 128 + int(e.signal) }

// A stopper ends a session at the first signal, and ksnoop at the second one.
type stopper struct {
	first atomic.Int32
	kill  func(syscall.Signal)
}

// stopOnSignal makes SIGINT and SIGTERM stop a session.
func stopOnSignal(session *runtime.Session) *stopper {
	s := &stopper{kill: killSelf}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go s.follow(signals, session)
	return s
}

// stoppable is a session, as far as signals go.
type stoppable interface {
	Stop() error
	RemoveEvents() error
}

func (s *stopper) follow(signals <-chan os.Signal, session stoppable) {
	sig := (<-signals).(syscall.Signal)
	s.first.Store(int32(sig))
	_ = session.Stop()
	sig = (<-signals).(syscall.Signal)
	_ = session.RemoveEvents()
	s.kill(sig)
}

// killSelf ends ksnoop as the signal does by itself. What is in place then, the
// kernel detaches.
func killSelf(sig syscall.Signal) {
	signal.Reset(sig)
	_ = syscall.Kill(os.Getpid(), sig)
}

// explain puts the signal in the place of [runtime.ErrStopped].
func (s *stopper) explain(err error) error {
	if errors.Is(err, runtime.ErrStopped) {
		return interrupted{syscall.Signal(s.first.Load())}
	}
	return err
}
