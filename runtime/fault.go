package runtime

import (
	"fmt"
	"math"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
)

// maxErrno is the greatest error number that the kernel encodes in a pointer
// (MAX_ERRNO in include/linux/err.h).
const maxErrno = 4095

// Reason says in a few words why a value could not be read.
func (v *Value) Reason() string {
	switch a := v.Addr; {
	case a == 0:
		return "NULL pointer"
	case a > math.MaxUint64-maxErrno:
		return "error pointer " + errnoName(-a)
	case a < 4096:
		return fmt.Sprintf("%#x is in the NULL page", a)
	case a>>63 == 0 && v.readsUser():
		return fmt.Sprintf("no readable user memory at %#x", a)
	case a>>63 == 0:
		return fmt.Sprintf("%#x is a user-space address", a)
	default:
		return fmt.Sprintf("no readable memory at %#x", a)
	}
}

// readsUser says whether some of what is read is memory of the process.
func (v *Value) readsUser() bool {
	return v.Text == compiler.UserText || slices.ContainsFunc(v.Path, func(a compiler.Access) bool { return a.User })
}

func errnoName(n uint64) string {
	if name := unix.ErrnoName(syscall.Errno(n)); name != "" {
		return "-" + name
	}
	return fmt.Sprintf("-%d", n)
}
