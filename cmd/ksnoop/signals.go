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

// stoppable is a session, as far as signals go.
type stoppable interface {
	Stop() error
	RemoveEvents() error
}

// A stopper ends a session at the first signal, and ksnoop at the second one.
// While a command runs, the keys of a terminal are the command's affair: it gets
// their signals, too. SIGTERM is meant for ksnoop alone, and is passed on.
type stopper struct {
	session stoppable
	command *command // nil: none
	hurry   func()   // ends what waits for a reader
	kill    func(syscall.Signal)
	asked   bool
	first   atomic.Int32
}

// stopOnSignal makes signals stop a session. Those that ksnoop was told to
// ignore, as by nohup, stay ignored.
func stopOnSignal(session stoppable, command *command, hurry func()) *stopper {
	s := &stopper{session: session, command: command, hurry: hurry, kill: killSelf}
	wanted := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
	if command != nil {
		wanted = append(wanted, syscall.SIGQUIT)
	}
	signals := make(chan os.Signal, 2)
	for _, sig := range wanted {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	go func() {
		for sig := range signals {
			s.take(sig.(syscall.Signal))
		}
	}()
	return s
}

func (s *stopper) take(sig syscall.Signal) {
	running := s.command.running()
	switch {
	case running && sig != syscall.SIGTERM && !s.command.group:
	case s.asked:
		_ = s.session.RemoveEvents()
		s.kill(sig)
	case running:
		s.asked = true
		s.command.signal(sig)
	default:
		s.asked = true
		s.first.Store(int32(sig))
		_ = s.session.Stop()
		s.hurry()
	}
}

// killSelf ends ksnoop as the signal does by itself. What is in place then, the
// kernel detaches.
func killSelf(sig syscall.Signal) {
	signal.Reset(sig)
	_ = syscall.Kill(os.Getpid(), sig)
}

// explain puts the signal in the place of [runtime.ErrStopped]: the status is
// that of a process that the signal killed.
func (s *stopper) explain(err error) error {
	if !errors.Is(err, runtime.ErrStopped) {
		return err
	}
	sig := syscall.Signal(s.first.Load())
	return statusError{exitSignal + int(sig), fmt.Errorf("ended by %s while attaching: nothing was traced", unix.SignalName(sig))}
}
