//go:build linux

package traffic

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// evil has characters that a terminal would obey or cannot show: an escape
// sequence, line ends, an 8-bit control character, a change of direction and
// half a character.
const evil = "evil\x1b[2J\n\r\u009b1m\u202e\xff"

// escapes sets the thread's name to the first 15 bytes of evil, which the
// kernel does not change, and calls openat on /evil, which does not exist, with
// all of evil in the path. Then it calls task_work_add, as the kind task-work
// does.
func escapes(o *options) error {
	name := append([]byte(evil), 0)
	if err := unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0); err != nil {
		return err
	}
	o.arg = "/" + evil
	if err := open(o); err != nil {
		return err
	}
	return taskWork(o)
}
