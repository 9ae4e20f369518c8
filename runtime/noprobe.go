package runtime

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// kprobeRefusal says why this user cannot have kprobes; "" if he can.
func kprobeRefusal() string {
	err := tryKprobe()
	switch {
	case errors.Is(err, unix.EINVAL):
		return ""
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return kprobesDenied(os.ReadFile)
	}
	return err.Error()
}

// tryKprobe asks for a kprobe on neither a name nor an address. It returns
// EINVAL to those who may have kprobes: that is checked first.
func tryKprobe() error {
	const kind = "/sys/bus/event_source/devices/kprobe/type"
	b, err := os.ReadFile(kind)
	if errors.Is(err, os.ErrNotExist) {
		return errors.New("this kernel is built without CONFIG_KPROBE_EVENTS")
	}
	if err != nil {
		return err
	}
	number, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 32)
	if err != nil {
		return fmt.Errorf("read %s: %w", kind, err)
	}
	attr := unix.PerfEventAttr{Type: uint32(number), Size: unix.PERF_ATTR_SIZE_VER1}
	fd, err := unix.PerfEventOpen(&attr, -1, 0, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err == nil {
		unix.Close(fd)
		return unix.EINVAL
	}
	return fmt.Errorf("perf_event_open: %w", err)
}
