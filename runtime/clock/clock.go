// Package clock reads the clock of events, CLOCK_MONOTONIC, which stands still while the
// machine sleeps and cannot be set.
package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now returns the time by the clock of events.
func Now() time.Duration { return read(unix.CLOCK_MONOTONIC) }

// WallOffset returns what must be added to the time by the clock of events to get the
// time of day, since 1970. The latter may be set at any moment.
func WallOffset() time.Duration {
	before := Now()
	day := read(unix.CLOCK_REALTIME)
	return day - (before+Now())/2
}

// Asleep returns for how long the machine has slept, and at most some moments more.
func Asleep() time.Duration {
	now := Now()
	return read(unix.CLOCK_BOOTTIME) - now
}

func read(id int32) time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(id, &t) // these clocks always exist
	return time.Duration(t.Nano())
}
