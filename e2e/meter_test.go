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
	loops, calls int     // the number of loops, and of calls in each
	nothing      float64 // instructions of a call without any program
	alone        bool    // whether only this thread is counted, as if the process had no other
}

// newMeter returns a meter for a call of vfs_read.
func newMeter(t *testing.T) *meter {
	traffic.LockThread()
	debug.SetGCPercent(-1)
	m := &meter{call: readZero(t), loops: 201, calls: 100}
	m.nothing = m.undisturbed()
	return m
}

// of returns a meter for another call.
func (m *meter) of(call func()) *meter {
	other := &meter{call: call, loops: m.loops, calls: m.calls, alone: m.alone}
	other.nothing = other.undisturbed()
	return other
}

// readFlags calls do_fcntl.
func readFlags(t *testing.T) func() {
	zero, err := unix.Open("/dev/zero", unix.O_RDONLY, 0)
	require.NoError(t, err)
	return func() { unix.RawSyscall(unix.SYS_FCNTL, uintptr(zero), unix.F_GETFL, 0) }
}

// readZero calls vfs_read with a count of 1.
func readZero(t *testing.T) func() {
	zero, err := unix.Open("/dev/zero", unix.O_RDONLY, 0)
	require.NoError(t, err)
	var b [1]byte
	return func() { unix.RawSyscall(unix.SYS_READ, uintptr(zero), uintptr(unsafe.Pointer(&b)), 1) }
}

// added returns the number of instructions that a way of tracing adds to a
// call.
func (m *meter) added(t *testing.T, attach func() (detach func() error)) float64 {
	detach := attach()
	with := m.undisturbed()
	require.NoError(t, detach())
	return with - m.nothing
}

// undisturbed returns the first quartile of many short loops. What interrupts a loop
// only adds to it: the timer, the Go runtime's own thread, and the ends of what ran
// before. With events there are few loops, of which that can be more than half.
func (m *meter) undisturbed() float64 {
	var all []float64
	for range m.loops {
		all = append(all, m.loop())
	}
	slices.Sort(all)
	return all[len(all)/4]
}

// loop returns the number of instructions of one call.
func (m *meter) loop() float64 {
	clock := instructions
	if m.alone {
		clock = threadInstructions
	}
	start := clock()
	for range m.calls {
		m.call()
	}
	return float64(clock()-start) / float64(m.calls)
}

// threadInstructions returns the instructions that this thread has executed, without
// those that the Go runtime's own thread executes meanwhile.
func threadInstructions() int64 {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts)
	return ts.Nano()
}

// instructions returns the clock of a machine in which a nanosecond is one
// instruction.
func instructions() int64 {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}
