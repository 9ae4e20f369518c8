package runtime

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// System identifies a running system.
type System struct {
	Kernel string // release of the kernel, as uname -r prints it
	Host   string // name of the host; may be empty
	Boot   string // id of the boot; "" where procfs is not mounted
}

// ThisSystem returns the running system.
func ThisSystem() (System, error) {
	u, err := uname()
	if err != nil {
		return System{}, err
	}
	s := System{Kernel: unix.ByteSliceToString(u.Release[:]), Host: unix.ByteSliceToString(u.Nodename[:])}
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		s.Boot = strings.TrimSpace(string(id))
	}
	return s, nil
}
