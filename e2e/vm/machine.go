package vm

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// A Machine is a virtual machine to run. It has three serial ports, so that
// nothing mixes: the kernel's messages go to the first one, what the guest
// prints to the second, its exit status to the third.
//
// What happens in it is a function of these fields and of the bytes of its files: its
// clocks count its own instructions, and its random numbers come from Seed.
// How fast the host is, and how busy, changes nothing.
type Machine struct {
	QEMU   string // path
	Kernel Kernel
	Files  []File   // in the initramfs, beside the kernel's modules; one is init
	Args   []string // init's arguments

	CPUs   int    // 1 unless set
	Memory int    // in MB; 1024 unless set
	Append string // more of the kernel's command line
	Seed   uint64 // other seeds give other interleavings and addresses; 1 unless set
	Icount bool   // a nanosecond of the guest's time is one instruction, not half of one; implies one CPU
}

// The files in a running machine's directory.
const (
	initrdFile  = "initrd"
	consoleFile = "console"
	statusFile  = "status"
)

// arguments returns QEMU's command line for a machine whose files are in dir.
func (m Machine) arguments(dir string) []string {
	args := []string{
		// One thread for all CPUs: with a thread each, QEMU before 8.1 keeps
		// executing instructions that another CPU has just changed, and a
		// kernel that is being probed dies of a stray int3.
		"-accel", "tcg,thread=single",
		// TCG corrupts the flags after cmpxchg16b: 6.12 dies at random with it.
		"-cpu", "max,cx16=off",
		"-m", strconv.Itoa(cmp.Or(m.Memory, 1024)),
		"-nodefaults", "-display", "none", "-no-reboot",
		"-serial", "file:" + filepath.Join(dir, consoleFile),
		"-serial", "stdio",
		"-serial", "file:" + filepath.Join(dir, statusFile),
		"-kernel", m.Kernel.image(),
		"-initrd", filepath.Join(dir, initrdFile),
		"-append", m.commandLine(),
	}
	cpus, shift := cmp.Or(m.CPUs, 1), 1
	if m.Icount {
		cpus, shift = 1, 0
	}
	return append(args,
		"-icount", fmt.Sprintf("shift=%d,sleep=off", shift), // 2 ns an instruction; a wait takes no time of the host
		"-seed", strconv.FormatUint(cmp.Or(m.Seed, 1), 10),
		"-rtc", "base=2026-01-01,clock=vm",
		"-smp", strconv.Itoa(cpus))
}

// commandLine returns the kernel's. panic=-1 reboots at once on a panic, which
// -no-reboot makes an exit; after an oops the guest would hang until its time is
// up. What follows -- are init's arguments.
func (m Machine) commandLine() string {
	words := []string{"console=ttyS0", "loglevel=5", "panic=-1", "oops=panic", m.Append, "--"}
	for _, arg := range m.Args {
		words = append(words, `"`+arg+`"`)
	}
	return strings.Join(words, " ")
}
