package term

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/runtime"
)

const (
	patience = time.Second            // how long a step may take before its progress is shown
	redraw   = 100 * time.Millisecond // time between updates of the line
)

// progress is a line on a terminal that shows the progress of a long step, and is
// erased at its end.
type progress struct {
	w         io.Writer
	verb      string
	functions int
	next      time.Time // time of the next update
	drawn     bool
}

// newProgress returns the progress of a step that starts now.
func newProgress(w io.Writer, verb string, functions int, now time.Time) *progress {
	return &progress{w: w, verb: verb, functions: functions, next: now.Add(patience)}
}

// show draws the line, if it is time to. A function has a place at entry, at return,
// or both.
func (p *progress) show(done, total int, now time.Time) {
	if total == 0 || now.Before(p.next) {
		return
	}
	p.next, p.drawn = now.Add(redraw), true
	cols, _ := sizeOf(p.w) // a line that goes on in the next one could not be erased
	line := cutLine(fmt.Appendf(nil, "ksnoop: %s %d of %d functions", p.verb, p.functions*done/total, p.functions), cols)
	fmt.Fprintf(p.w, "\r\x1b[K%s", line)
}

func (p *progress) clear() {
	if p.drawn {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	p.drawn = false
}

// WithProgress runs a step of a session and shows its progress on w, if w is a
// terminal that obeys control sequences.
func WithProgress(w io.Writer, session *runtime.Session, verb string, functions int, step func() error) error {
	w = FileOf(w) // redrawing the line takes control characters
	if !IsTerminal(w) || os.Getenv("TERM") == "dumb" {
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

// IsTerminal reports whether w writes to a terminal.
func IsTerminal(w io.Writer) bool {
	file, ok := FileOf(w).(interface{ Fd() uintptr })
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return err == nil
}
