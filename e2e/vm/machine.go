package vm

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// A Machine is a virtual machine to run. It has three serial ports, so that
// outputs do not mix: the first has the kernel's messages, the second what the
// guest prints, and the third its exit status.
//
// What happens in it is a function of these fields and of the bytes of its files: its
// clocks count its own instructions, and its random numbers come from Seed.
// How fast the host is, and how busy, changes nothing if libfaketime is installed; the
// function QEMU installs it for root. With several CPUs the host may change which of them
// goes first, unless this program has CAP_SYS_NICE.
type Machine struct {
	QEMU   string // path
	Kernel Kernel
	Files  []File   // in the initramfs, besides the kernel's modules; one is init
	Args   []string // init's arguments

	CPUs   int    // 1 unless set
	Memory int    // in MB; 1024 unless set
	Model  string // QEMU's name of the processor; the one with all features unless set
	Append string // appended to the kernel's command line
	Seed   uint64 // other seeds give other interleavings and addresses; 1 unless set
	Icount bool   // a nanosecond of the guest's time is one instruction, not half of one; implies one CPU
	KASLR  bool   // amd64 boots the compressed kernel, which moves itself by chance and takes longer; implied by Icount
}

// The names of the files in a running machine's directory.
const (
	initrdFile  = "initrd"
	consoleFile = "console"
	outputFile  = "output"
	statusFile  = "status"
)

// image returns the file that QEMU boots. To decompress a kernel in the guest takes a
// fifth of the time of a boot.
func (m Machine) image() (string, error) {
	if m.KASLR || !m.quick() {
		return m.Kernel.image(), nil
	}
	return m.Kernel.vmlinux()
}

// quick reports whether the machine leaves out what makes a boot long on amd64.
// Machines with Icount keep all of it, so that their counts remain comparable.
func (m Machine) quick() bool { return m.Kernel.Arch == AMD64 && !m.Icount }

// arguments returns QEMU's command line for a machine that boots image and whose files
// are in dir.
func (m Machine) arguments(image, dir string) []string {
	args := []string{
		// Use one thread for all CPUs. With a thread for each, QEMU before 8.1 keeps
		// executing instructions that another CPU has just changed, and a kernel
		// with probes dies of a stray int3.
		"-accel", "tcg,thread=single",
		"-m", strconv.Itoa(cmp.Or(m.Memory, 1024)),
		"-nodefaults", "-display", "none", "-no-reboot",
		"-kernel", image,
		"-initrd", filepath.Join(dir, initrdFile),
		"-append", m.commandLine(),
	}
	args = append(args, m.hardware(dir)...)
	shift := 1
	if m.Icount {
		shift = 0
	}
	count := fmt.Sprintf("shift=%d,sleep=off", shift) // 1<<shift ns an instruction; a wait takes no time of the host
	if m.cpus() == 1 {
		count += recorded
	}
	return append(args,
		"-icount", count,
		"-seed", strconv.FormatUint(cmp.Or(m.Seed, 1), 10),
		"-rtc", "base=2026-01-01,clock=vm",
		"-smp", strconv.Itoa(m.cpus()))
}

func (m Machine) cpus() int {
	if m.Icount {
		return 1
	}
	return cmp.Or(m.CPUs, 1)
}

// commandLine returns the kernel's command line. panic=-1 reboots at once on a
// panic, which -no-reboot turns into an exit. After an oops the guest would
// otherwise hang until its time is up. On amd64 init starts the other CPUs: before
// Linux 6.5 the kernel cannot do so here. init's arguments follow --.
//
// Without cryptomgr.notests the kernel tests its ciphers, which takes 2.5 s beside what the
// guest does first. To test the timer it reads its clock in a loop, which is slow to emulate.
func (m Machine) commandLine() string {
	words := []string{"console=" + m.Kernel.Arch.console(), "loglevel=5", "panic=-1", "oops=panic", "cryptomgr.notests"}
	if m.quick() {
		words = append(words, "no_timer_check")
	}
	if m.cpus() > 1 && m.Kernel.Arch == AMD64 {
		words = append(words, "maxcpus=1")
	}
	words = append(words, m.Append, "--")
	for _, arg := range m.Args {
		words = append(words, `"`+arg+`"`)
	}
	return strings.Join(words, " ")
}
