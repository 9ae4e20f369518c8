//go:build linux

package guest

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mounts lists the file systems to mount, in order.
var mounts = []struct{ fstype, dir string }{
	{"proc", "/proc"},
	{"sysfs", "/sys"},
	{"devtmpfs", "/dev"},
	{"tmpfs", "/tmp"},
	{"bpf", "/sys/fs/bpf"},
	{"cgroup2", "/sys/fs/cgroup"},
	{"debugfs", "/sys/kernel/debug"},
	{"tracefs", "/sys/kernel/tracing"},
}

func mountAll() error {
	for _, m := range mounts {
		if err := os.MkdirAll(m.dir, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.fstype, m.dir, m.fstype, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.dir, err)
		}
	}
	return nil
}

// loopbackUp brings the loopback interface up. The kernel adds the address
// 127.0.0.1 itself.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("bring lo up: %w", err)
	}
	return nil
}

// openSerial opens a serial port that passes every byte unchanged.
func openSerial(name string) (*os.File, error) {
	tty, err := os.OpenFile(name, os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	termios, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		return nil, err
	}
	termios.Oflag &^= unix.OPOST
	return tty, unix.IoctlSetTermios(int(tty.Fd()), unix.TCSETS, termios)
}

// drain waits until the serial port has sent everything.
func drain(tty *os.File) {
	unix.IoctlSetInt(int(tty.Fd()), unix.TCSBRK, 1)
}
