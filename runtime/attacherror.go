package runtime

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
)

// AttachError says that a probe could not be attached.
type AttachError struct {
	Probe *compiler.Probe
	Kind  compiler.Kind
	Err   error
}

func (e *AttachError) Error() string {
	place := e.Probe.Func.Name
	if e.Probe.Offset > 0 {
		place += fmt.Sprintf("+%d", e.Probe.Offset)
	}
	return fmt.Sprintf("attach %s to %s: %v", e.Kind, place, e.reason())
}

func (e *AttachError) Unwrap() error { return e.Err }

// enotsupp is what a trampoline answers for a signature that it cannot pass on
// (ENOTSUPP in include/linux/errno.h, which user space has no name for).
const enotsupp = unix.Errno(524)

// reason explains the kernel's error numbers, which stand for other things in
// this place than their texts say.
func (e *AttachError) reason() any {
	var errno unix.Errno
	if !errors.As(e.Err, &errno) {
		// The library hides some numbers behind errors of its own.
		switch {
		case errors.Is(e.Err, os.ErrNotExist):
			errno = unix.ESRCH
		case errors.Is(e.Err, ebpf.ErrNotSupported) && !e.Kind.Multi():
			errno = enotsupp
		default:
			return e.Err
		}
	}
	switch errno {
	case unix.EBUSY, unix.EINVAL, unix.ENOENT, unix.ESRCH, unix.EADDRNOTAVAIL, enotsupp:
		return fmt.Sprintf("the kernel allows no probe there (error %d): it is marked notrace, or its code is not one plain function", int(errno))
	case unix.EPERM, unix.EACCES:
		return fmt.Sprintf("the kernel does not permit it (error %d): kprobes need CAP_PERFMON with kernel.perf_event_paranoid at most 2, or CAP_SYS_ADMIN", int(errno))
	}
	return e.Err
}
