package clock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestWallOffset verifies that the offset converts a time by the clock of events to the
// time of day.
func TestWallOffset(t *testing.T) {
	var mono unix.Timespec
	before := time.Now()
	require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono))
	now := Now()
	after := time.Now()
	require.GreaterOrEqual(t, now.Nanoseconds(), mono.Nano())
	day := time.Unix(0, mono.Nano()+int64(WallOffset()))
	require.WithinRange(t, day, before.Add(-time.Millisecond), after.Add(time.Millisecond))
}
