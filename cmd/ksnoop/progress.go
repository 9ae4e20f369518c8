package main

import (
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/runtime"
)

const (
	patience = time.Second            // how long a step may take before a line tells how far it is
	redraw   = 100 * time.Millisecond // how long a line stays as it is
)

// A progress is a line on a terminal that tells how far a long step is, and
// goes away when it is done.
type progress struct {
	w         io.Writer
	verb      string
	functions int
	next      time.Time // when to draw
	drawn     bool
}

// newProgress begins a step that starts now.
func newProgress(w io.Writer, verb string, functions int, now time.Time) *progress {
	return &progress{w: w, verb: verb, functions: functions, next: now.Add(patience)}
}

// show draws the line, if it is time to. A function has a place at entry, at
// return, or both.
func (p *progress) show(done, total int, now time.Time) {
	if total == 0 || now.Before(p.next) {
		return
	}
	p.next, p.drawn = now.Add(redraw), true
	fmt.Fprintf(p.w, "\r\x1b[Kksnoop: %s %d of %d functions", p.verb, p.functions*done/total, p.functions)
}

func (p *progress) clear() {
	if p.drawn {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	p.drawn = false
}

// withProgress takes a step of a session while a line on w tells how far it
// is, if w is a terminal.
func withProgress(w io.Writer, session *runtime.Session, verb string, functions int, step func() error) error {
	w = fileOf(w) // the line is redrawn by control characters
	if !isTerminal(w) {
		return step()
	}
	p := newProgress(w, verb, functions, time.Now())
	session.Progress = func(done, total int) { p.show(done, total, time.Now()) }
	defer func() {
		session.Progress = nil
		p.clear()
	}()
	return step()
}

// isTerminal says whether what is written to w goes to a terminal.
func isTerminal(w io.Writer) bool {
	file, ok := w.(interface{ Fd() uintptr })
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return err == nil
}
