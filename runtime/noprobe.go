package runtime

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// kprobeRefusal says why this user cannot have kprobes, and what would let him;
// "" if he can.
func kprobeRefusal() string {
	err := tryKprobe()
	switch {
	case errors.Is(err, unix.EINVAL):
		return ""
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		if locked(os.ReadFile) {
			return errLockdown.Error()
		}
		return perfRefusal(paranoid(), ReadPrivileges())
	}
	return err.Error()
}

// perfRefusal explains why perf_event_open is refused to one who has
// CAP_PERFMON. Debian and others keep perf events from all but
// CAP_SYS_ADMIN by values that the kernel itself does not know.
func perfRefusal(paranoid string, p Privileges) string {
	if n, err := strconv.Atoi(paranoid); (err == nil && n <= 2) || p.SysAdmin && !p.UserNamespace {
		return "perf_event_open is refused, by a seccomp filter or a security module: let the container's profile allow it"
	}
	return "kernel.perf_event_paranoid is " + paranoid + ", which keeps kprobes from users without CAP_SYS_ADMIN (sysctl kernel.perf_event_paranoid=2 gives them to CAP_PERFMON)"
}

// modulesRefusal says why this user cannot have trampolines in modules: their
// types must be asked for by number. "" if he can.
func modulesRefusal() string {
	const vmlinux = 1 // of all types the first to be loaded
	types, err := btf.NewHandleFromID(vmlinux)
	if err == nil {
		types.Close()
	}
	if errors.Is(err, unix.EPERM) {
		return "fentry and tp_btf in a module take CAP_SYS_ADMIN"
	}
	return ""
}

// tryKprobe asks for a kprobe on neither a name nor an address. It returns
// EINVAL to those who may have kprobes: that is checked first.
func tryKprobe() error {
	kind, err := kprobeType()
	if err != nil {
		return err
	}
	attr := unix.PerfEventAttr{Type: kind, Size: unix.PERF_ATTR_SIZE_VER1}
	fd, err := unix.PerfEventOpen(&attr, -1, 0, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err == nil {
		unix.Close(fd)
		return unix.EINVAL
	}
	return fmt.Errorf("perf_event_open: %w", err)
}

func paranoid() string {
	b, err := os.ReadFile("/proc/sys/kernel/perf_event_paranoid")
	if err != nil {
		return "too high"
	}
	return strings.TrimSpace(string(b))
}
