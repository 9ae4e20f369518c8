//go:build linux

package traffic

import (
	"golang.org/x/sys/unix"
)

// poll calls poll with a timeout of size milliseconds and nothing to wait for.
// timespec64_add_safe gets that time by value and returns the sum with the
// present.
func poll(o *options) error {
	return o.repeat(func() error {
		_, err := unix.Poll(nil, o.size)
		return err
	})
}

// sockopt sets SO_RCVBUF to size. sock_setsockopt, or sk_setsockopt from 6.1
// on, gets a sockptr_t of 16 bytes by value, followed by the length 4.
func sockopt(o *options) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return o.repeat(func() error {
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, o.size)
	})
}
