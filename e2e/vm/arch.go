package vm

import "path/filepath"

// An Arch is an architecture whose kernels can be booted. Go and Debian have the
// same names for them.
type Arch string

const (
	AMD64 Arch = "amd64"
	ARM64 Arch = "arm64"
)

// qemu returns the name of the architecture's emulator and the package that
// holds it.
func (a Arch) qemu() (program, pkg string) {
	if a == ARM64 {
		return "qemu-system-aarch64", "qemu-system-arm"
	}
	return "qemu-system-x86_64", "qemu-system-x86"
}

// console returns the kernel's name for the serial port that has its messages.
func (a Arch) console() string {
	if a == ARM64 {
		return "ttyAMA0"
	}
	return "ttyS0"
}

// hardware returns QEMU's arguments for the processor and the serial ports, which
// write to files in dir. With a pipe the guest would notice how fast it is read: while
// it is full, QEMU tries each byte again.
func (m Machine) hardware(dir string) []string {
	console, output, status := filepath.Join(dir, consoleFile), filepath.Join(dir, outputFile), filepath.Join(dir, statusFile)
	if m.Kernel.Arch != ARM64 {
		args := []string{"-cpu", m.cpu(), "-serial", "file:" + console, "-serial", "file:" + output, "-serial", "file:" + status}
		if m.quick() { // the kernel measures an HPET in a loop that is slow to emulate
			args = append(args, "-M", "hpet=off")
		}
		return args
	}
	// The machine has one serial port itself, a pl011. Those on the PCI bus
	// become ttyS0 to ttyS2, and the guest uses the last two, as on amd64.
	return []string{"-M", "virt", "-cpu", m.cpu(), "-serial", "file:" + console,
		"-chardev", "null,id=s0", "-chardev", "file,id=s1,path=" + output, "-chardev", "file,id=s2,path=" + status,
		"-device", "pci-serial,chardev=s0", "-device", "pci-serial,chardev=s1", "-device", "pci-serial,chardev=s2"}
}

// cpu returns the processor model: the one with all features, unless
// Model names another.
//
// On amd64 TCG corrupts the flags after cmpxchg16b, and 6.12 crashes at random
// with it. TCG also copies byte by byte where the kernel considers rep movsb to
// be fast. Machines with Icount keep that, so that their counts remain
// comparable. On arm64 QEMU's own algorithm for pointer authentication takes a
// fifth of the time of Arm's.
func (m Machine) cpu() string {
	switch {
	case m.Model != "":
		return m.Model
	case m.Kernel.Arch == ARM64:
		return "max,pauth-impdef=on"
	case m.Icount:
		return "max,cx16=off"
	}
	return "max,cx16=off,erms=off,fsrm=off"
}
