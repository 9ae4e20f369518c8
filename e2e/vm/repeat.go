//go:build linux

package vm

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// recorded has QEMU record the run, to nowhere: then its two threads take turns.
// Otherwise the thread that moves the clock to the next timer while the CPU is idle may
// find it idle before the instructions that it has just executed are counted, and the
// timer comes late by as many: seen once in some 100,000 waits on QEMU 7.2, which records
// machines with one CPU only.
const recorded = ",rr=record,rrfile=" + os.DevNull

// clockLibrary returns the path of libfaketime, or "" if it is not installed.
func clockLibrary() string {
	found, _ := filepath.Glob("/usr/lib/*/faketime/libfaketimeMT.so.1") // the pattern is right
	if len(found) == 0 {
		return ""
	}
	return found[0]
}

// stoppedClock returns the environment variables with which QEMU's date stands still. QEMU
// makes its copies of the guest's page tables smaller when they were little used for 100 ms
// of the host. How much they hold is seen in the guest: between the removal of a page and
// the flush that follows, another thread of the process may run, and finds the page only if
// a copy has it. Without the library machines do not quite repeat. Times of files and
// timers remain the host's.
func stoppedClock() []string {
	library := clockLibrary()
	if library == "" {
		return nil
	}
	return []string{"LD_PRELOAD=" + library, "FAKETIME=2026-01-01 00:00:00", "FAKETIME_DONT_FAKE_MONOTONIC=1", "NO_FAKE_STAT=1"}
}

// Repeats returns nil if machines of one CPU repeat to the byte, or an error that says why
// not.
func Repeats() error {
	if clockLibrary() == "" {
		return errors.New("stop QEMU's clock: libfaketime is not installed")
	}
	return nil
}

// startInTurns starts QEMU for a machine of several CPUs, so that its threads take turns,
// too: on one processor of the host, where the thread that moves the clock runs as soon as
// it is woken, before the other one executes more. That needs CAP_SYS_NICE; without
// it, the machine works and does not quite repeat. The caller must have locked its thread.
func startInTurns(cmd *exec.Cmd) error {
	var old unix.CPUSet
	if err := unix.SchedGetaffinity(0, &old); err != nil {
		return fmt.Errorf("get the processors: %w", err)
	}
	if err := unix.SchedSetaffinity(0, currentProcessor()); err != nil {
		return fmt.Errorf("choose a processor: %w", err)
	}
	err := cmd.Start()
	_ = unix.SchedSetaffinity(0, &old) // this thread had them before
	if err == nil {
		_ = firstInTurn(cmd.Process.Pid) // without the capability the machine must do as it is
	}
	return err
}

// TakesTurns returns nil if QEMU's threads can be given an order, so that machines of
// several CPUs repeat like those of one, or an error that says why not.
func TakesTurns() error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with this function
		result <- firstInTurn(0)
	}()
	if err := <-result; err != nil {
		return fmt.Errorf("give QEMU's threads an order: %w", err)
	}
	return nil
}

// currentProcessor returns the processor on which the kernel has this thread now.
func currentProcessor() *unix.CPUSet {
	var cpu uint32
	_, _, _ = unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0) // it cannot fail
	var set unix.CPUSet
	set.Set(int(cpu))
	return &set
}

// firstInTurn lets a thread run as soon as it is woken, ahead of those that it starts.
func firstInTurn(tid int) error {
	return unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Flags: unix.SCHED_FLAG_RESET_ON_FORK, Priority: 1}, 0)
}
