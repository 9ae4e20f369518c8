//go:build linux

package traffic

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// evil is what a terminal would obey, or cannot read: an escape sequence, ends of
// lines, a control of eight bits, a change of direction and half a character.
const evil = "evil\x1b[2J\n\r\u009b1m\u202e\xff"

// escapes gives the thread a name of the first 15 bytes of evil, which the
// kernel keeps as they are, and calls openat on /evil, which is not there, with
// all of it in its name. Then task_work_add, as task-work does.
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
