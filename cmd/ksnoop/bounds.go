package main

import (
	"io"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/ksnoop/ksnoop/runtime"
)

// boundFlags is when tracing ends, and how others learn that it has begun.
func boundFlags(f *pflag.FlagSet) {
	f.StringP("events", "n", "", "end after `N` events")
	timeFlags(f)
}

// timeFlags is the same for what does not end after a number of events.
func timeFlags(f *pflag.FlagSet) {
	f.String("for", "", "end after `DURATION`, such as 500ms, 2m or 10 (seconds)")
	f.String("ready-file", "", "create `FILE`, with ksnoop's process id in it, while everything is attached")
	f.String("ready-fd", "", "write a newline to file descriptor `N`, and close it, when everything is attached")
}

// bounds is when tracing ends by itself; 0: it does not.
type bounds struct {
	events   uint64
	duration time.Duration
}

// mostEvents bounds -n.
const mostEvents = 1 << 62

func readBounds(c *invocation) (b bounds, err error) {
	if b.events, err = number(c, "events", mostEvents); err != nil {
		return b, err
	}
	if c.IsSet("for") {
		b.duration, err = parseDuration(c.String("for"))
	}
	return b, err
}

// parseDuration reads a duration; a plain number is one of seconds.
func parseDuration(text string) (time.Duration, error) {
	unit := ""
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		unit = "s"
	}
	d, err := time.ParseDuration(text + unit)
	if err != nil || d <= 0 {
		return 0, usagef("--for is %q: it must be a time such as 500ms, 2m or 10 (seconds)", text)
	}
	return d, nil
}

// eventSource is where events come from.
type eventSource interface {
	Read(*runtime.Event) error
	Idle() bool
}

// limited ends after a number of events.
type limited struct {
	eventSource
	left uint64
}

func (l *limited) Read(ev *runtime.Event) error {
	if l.left == 0 {
		return io.EOF
	}
	l.left--
	return l.eventSource.Read(ev)
}

// Idle says so at the end, too, where nobody waits for more.
func (l *limited) Idle() bool { return l.left == 0 || l.eventSource.Idle() }
