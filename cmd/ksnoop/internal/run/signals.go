package run

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/runtime"
)

// stoppable is the part of a session that signals need.
type stoppable interface {
	Stop() error
	RemoveEvents() error
}

// stopper ends a session at the first signal, and ksnoop at the second one.
// While a command runs, signals from the keys of a terminal are left to the command,
// which receives them too. SIGTERM goes to ksnoop alone, and is passed on.
type stopper struct {
	session stoppable
	command *Command // nil for none
	ready   *Ready   // nil for none
	hurry   func()   // ends a write that waits for a reader
	kill    func(syscall.Signal)
	// background reports that SIGINT was ignored when ksnoop was started. Then no
	// key of a terminal sends it to the command, and it goes to ksnoop alone, too.
	background bool
	asked      bool           // whether a signal has ended the session or the command:
	last       syscall.Signal // this one,
	at         time.Time      // at this time
	first      atomic.Int32

	signals chan os.Signal
	keys    []os.Signal   // those that the command receives too
	settled chan struct{} // asks listen to take all that wait in signals, and answers
}

// interrupts receives SIGINT in a ksnoop that was started with SIGINT ignored, as
// non-interactive shells start background jobs. A SIGINT that is sent to it anyway is
// meant for it.
type interrupts struct {
	signals chan os.Signal
	heard   chan struct{} // closed when a stopper receives them
}

// heedInterrupts makes SIGINT end ksnoop until there is a stopper. It returns nil
// if SIGINT was not ignored and ends ksnoop anyway.
func heedInterrupts() *interrupts {
	if !signal.Ignored(os.Interrupt) {
		return nil
	}
	i := &interrupts{signals: make(chan os.Signal, 2), heard: make(chan struct{})}
	i.notify()
	go func() {
		select {
		case <-i.signals:
			os.Exit(exit.Signal + int(syscall.SIGINT))
		case <-i.heard:
		}
	}()
	return i
}

func (i *interrupts) notify() { signal.Notify(i.signals, os.Interrupt) }

// StopOnSignal makes signals stop a session. SIGHUP stays ignored if it was, for
// nohup; SIGINT and SIGTERM are always handled. ready, which may be nil, is closed before ksnoop ends.
func StopOnSignal(session stoppable, command *Command, ready *Ready, own Inherited, hurry func()) *stopper {
	s := &stopper{
		session: session, command: command, ready: ready, hurry: hurry, kill: killSelf,
		signals: make(chan os.Signal, 2), keys: []os.Signal{os.Interrupt}, settled: make(chan struct{}),
	}
	if i := own.interrupts; i != nil {
		s.background, s.kill, s.signals = true, exitAs, i.signals
		close(i.heard)
	}
	signal.Notify(s.signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(s.signals, syscall.SIGHUP)
	}
	if !signal.Ignored(syscall.SIGQUIT) {
		s.keys = append(s.keys, syscall.SIGQUIT)
		signal.Notify(s.signals, syscall.SIGQUIT)
	}
	if command != nil && !command.group && !s.background {
		command.settle = s.settle
	}
	go s.listen()
	return s
}

func (s *stopper) listen() {
	for {
		select {
		case sig := <-s.signals:
			s.take(sig.(syscall.Signal))
		case <-s.settled:
			for len(s.signals) > 0 {
				s.take((<-s.signals).(syscall.Signal))
			}
			s.settled <- struct{}{}
		}
	}
}

// settle is called when the command has ended, while it still counts as running: the
// signals of keys that were sent until then were for the command too, and must not be
// taken for the user's first and second after it. Ignoring them meanwhile would drop
// them, but os/signal ends the program by a signal that is ignored while a thread is at
// the beginning of its handler.
func (s *stopper) settle() { s.takeSent(s.keys...) }

// came reports whether a signal has ended the session. One that was sent before is not
// overlooked: it may not have come to a thread of ksnoop yet, nor to listen.
func (s *stopper) came() bool {
	s.takeSent(os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
	return s.signal() != 0
}

// takeSent waits until listen has taken the signals of these kinds that were sent.
func (s *stopper) takeSent(sigs ...os.Signal) {
	awaitThreads(sigs) // the kernel has given them to threads,
	awaitHandlers()    // which have looked at them,
	// and Stop waits until those are in their channels. It needs a channel of its own:
	// nothing must lose SIGTERM.
	idle := make(chan os.Signal, 1)
	signal.Notify(idle, syscall.SIGWINCH)
	signal.Stop(idle)
	s.settled <- struct{}{}
	<-s.settled
}

// awaitThreads waits until the kernel has given all signals of these kinds that were
// sent to ksnoop to one of its threads.
func awaitThreads(sigs []os.Signal) {
	for _, sig := range sigs {
		for hasPending("/proc/self/status", "ShdPnd", sig.(syscall.Signal)) {
			time.Sleep(50 * time.Microsecond)
		}
	}
}

// awaitHandlers waits until every thread has left the signal handler that it may be in.
// A busy machine can preempt a thread at the beginning of a handler, where Go does not
// know yet that there is a signal, until long after the next one was handled. All
// handlers block all signals, so a thread that takes one of its own is in none: SIGURG,
// which Go's scheduler sends to threads anyway.
func awaitHandlers() {
	threads, _ := os.ReadDir("/proc/self/task") // without /proc a key may count as the user's
	var sent []string
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err == nil && unix.Tgkill(os.Getpid(), id, unix.SIGURG) == nil {
			sent = append(sent, "/proc/self/task/"+thread.Name()+"/status")
		}
	}
	for _, status := range sent {
		for hasPending(status, "SigPnd", unix.SIGURG) {
			time.Sleep(50 * time.Microsecond)
		}
	}
}

// hasPending reports whether a signal is yet to be taken: in SigPnd by the thread of the
// status file, in ShdPnd by any thread. A thread in an uninterruptible wait (D) is in no
// handler, but it may be the one that will take a signal of the whole process.
func hasPending(status, field string, sig syscall.Signal) bool {
	text, _ := os.ReadFile(status) // empty when the thread has ended
	_, state, _ := strings.Cut(string(text), "\nState:\t")
	_, mask, _ := strings.Cut(string(text), "\n"+field+":\t")
	mask, _, _ = strings.Cut(mask, "\n")
	pending, _ := strconv.ParseUint(mask, 16, 64)
	return pending&(1<<(sig-1)) != 0 && (field == "ShdPnd" || !strings.HasPrefix(state, "D"))
}

// oneRequest is how long after a signal another one of its kind belongs to the same
// request: timeout(1) signals the command that it has started, and then its whole group.
const oneRequest = 100 * time.Millisecond

func (s *stopper) take(sig syscall.Signal) {
	running := s.command.running()
	if sig == syscall.SIGINT && s.background && running {
		sig = syscall.SIGTERM // the command ignores SIGINT
	}
	if s.asked && sig == s.last && time.Since(s.at) < oneRequest {
		return
	}
	switch {
	case running && sig != syscall.SIGTERM && !s.command.group:
	case s.asked:
		_ = s.session.RemoveEvents()
		s.ready.Close()
		s.kill(sig)
	case running:
		s.asked, s.last, s.at = true, sig, time.Now()
		s.command.signal(sig)
	default:
		s.asked, s.last, s.at = true, sig, time.Now()
		s.first.Store(int32(sig))
		_ = s.session.Stop()
		s.hurry()
	}
}

// signal returns the signal that has stopped the session, or 0 if none has.
func (s *stopper) signal() syscall.Signal { return syscall.Signal(s.first.Load()) }

// killSelf ends ksnoop by the default action of the signal. The kernel then detaches
// its programs. For SIGQUIT, Go's action is to print all stacks.
func killSelf(sig syscall.Signal) {
	if sig == syscall.SIGQUIT {
		exitAs(sig)
	}
	signal.Reset(sig)
	_ = syscall.Kill(os.Getpid(), sig)
}

// exitAs ends ksnoop with the status of a process that the signal has killed, for a
// signal that cannot kill: after a reset, it would be ignored as before.
func exitAs(sig syscall.Signal) { os.Exit(exit.Signal + int(sig)) }

// Explain replaces [runtime.ErrStopped] by an error about the signal, with the status
// of a process that the signal has killed.
func (s *stopper) Explain(err error) error {
	if !errors.Is(err, runtime.ErrStopped) {
		return err
	}
	sig := s.signal()
	return exit.StatusError{Status: exit.Signal + int(sig), Reason: fmt.Errorf("ended by %s while attaching: nothing was traced", unix.SignalName(sig))}
}
