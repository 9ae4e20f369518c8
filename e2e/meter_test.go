//go:build linux

package e2e

import (
	"runtime/debug"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/e2e/traffic"
)

// A meter counts the instructions of a call of vfs_read.
type meter struct {
	zero    int
	byte    [1]byte
	nothing float64 // without any program
}

func newMeter(t *testing.T) *meter {
	traffic.LockThread()
	debug.SetGCPercent(-1)
	zero, err := unix.Open("/dev/zero", unix.O_RDONLY, 0)
	require.NoError(t, err)
	m := &meter{zero: zero}
	m.nothing = m.median()
	return m
}

// added is the number of instructions that a way of tracing adds to a call.
func (m *meter) added(t *testing.T, attach func() (detach func() error)) float64 {
	detach := attach()
	with := m.median()
	require.NoError(t, detach())
	return with - m.nothing
}

// median is of many short loops: the timer, and the Go runtime's own thread,
// interrupt a few of them.
func (m *meter) median() float64 {
	var all []float64
	for range 201 {
		all = append(all, m.loop())
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// loop is the number of instructions of one call.
func (m *meter) loop() float64 {
	const n = 100
	start := instructions()
	for range n {
		unix.RawSyscall(unix.SYS_READ, uintptr(m.zero), uintptr(unsafe.Pointer(&m.byte)), 1)
	}
	return float64(instructions()-start) / n
}

// instructions is the clock of a machine in which a nanosecond is one.
func instructions() int64 {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}
