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

// A meter counts the instructions of a system call.
type meter struct {
	call         func()
	loops, calls int     // how many loops there are, and calls in each
	nothing      float64 // without any program
}

// newMeter counts those of a call of vfs_read.
func newMeter(t *testing.T) *meter {
	traffic.LockThread()
	debug.SetGCPercent(-1)
	m := &meter{call: readZero(t), loops: 201, calls: 100}
	m.nothing = m.median()
	return m
}

// readZero calls vfs_read with a count of 1.
func readZero(t *testing.T) func() {
	zero, err := unix.Open("/dev/zero", unix.O_RDONLY, 0)
	require.NoError(t, err)
	var b [1]byte
	return func() { unix.RawSyscall(unix.SYS_READ, uintptr(zero), uintptr(unsafe.Pointer(&b)), 1) }
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
	for range m.loops {
		all = append(all, m.loop())
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// loop is the number of instructions of one call.
func (m *meter) loop() float64 {
	start := instructions()
	for range m.calls {
		m.call()
	}
	return float64(instructions()-start) / float64(m.calls)
}

// instructions is the clock of a machine in which a nanosecond is one.
func instructions() int64 {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}
