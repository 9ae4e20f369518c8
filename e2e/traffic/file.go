//go:build linux

package traffic

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// read calls vfs_read with a count of size.
func read(o *options) error {
	fd, err := unix.Open(cmp.Or(o.file, "/dev/zero"), unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	buf := make([]byte, o.size)
	return o.repeat(func() error {
		_, err := unix.Read(fd, buf)
		return err
	})
}

// write calls vfs_write with a count of size.
func write(o *options) error {
	fd, err := unix.Open(cmp.Or(o.file, "/dev/null"), unix.O_WRONLY|unix.O_CREAT, 0o644)
	if err != nil {
		return err
	}
	buf := make([]byte, o.size)
	return o.repeat(func() error {
		_, err := unix.Write(fd, buf)
		return err
	})
}

// letters calls vfs_write with a count of size, and with other letters each time.
func letters(o *options) error {
	fd, err := unix.Open("/dev/null", unix.O_WRONLY, 0)
	if err != nil {
		return err
	}
	buf, random := make([]byte, o.size), rand.New(rand.NewPCG(1, 1))
	return o.repeat(func() error {
		for i := range buf {
			buf[i] = 'A' + byte(random.IntN(26))
		}
		_, err := unix.Write(fd, buf)
		return err
	})
}

// splice calls do_splice with a length of size, from a pipe to a file. Where the kernel
// refuses that, it reads and writes, as programs do.
func splice(o *options) error {
	fd, err := unix.Open(cmp.Or(o.file, "/dev/zero"), unix.O_WRONLY|unix.O_CREAT, 0o644)
	if err != nil {
		return err
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], 0); err != nil {
		return err
	}
	buf := make([]byte, o.size)
	return o.repeat(func() error {
		if _, err := unix.Write(pipe[1], buf); err != nil {
			return err
		}
		_, err := unix.Splice(pipe[0], nil, fd, nil, o.size, 0)
		if err == unix.EINVAL {
			if _, err = unix.Read(pipe[0], buf); err == nil {
				_, err = unix.Write(fd, buf)
			}
		}
		return err
	})
}

// seek calls vfs_llseek twice: with an offset of size, which moves the position so
// far, and with one of 0, which leaves it.
func seek(o *options) error {
	fd, err := unix.Open(cmp.Or(o.file, "/dev/zero"), unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return o.repeat(func() error {
		for _, by := range []int64{int64(o.size), 0} {
			if _, err := unix.Seek(fd, by, unix.SEEK_CUR); err != nil {
				return err
			}
		}
		return nil
	})
}

// eagain calls vfs_read with a count of size, which returns -EAGAIN.
func eagain(o *options) error {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_NONBLOCK); err != nil {
		return err
	}
	buf := make([]byte, o.size)
	return o.repeat(func() error {
		if n, err := unix.Read(pipe[0], buf); err != unix.EAGAIN {
			return fmt.Errorf("read an empty pipe: %d, %v", n, err)
		}
		return nil
	})
}

// open calls openat(AT_FDCWD) on the argument, whether or not the file exists.
func open(o *options) error {
	if o.arg == "" {
		return errors.New("a path is wanted")
	}
	return o.repeat(func() error {
		if fd, err := unix.Openat(unix.AT_FDCWD, o.arg, unix.O_RDONLY, 0); err == nil {
			unix.Close(fd)
		}
		return nil
	})
}

// stat calls newfstatat on the argument, whether or not the file exists.
func stat(o *options) error {
	if o.arg == "" {
		return errors.New("a path is wanted")
	}
	return o.repeat(func() error {
		var st unix.Stat_t
		unix.Fstatat(unix.AT_FDCWD, o.arg, &st, 0)
		return nil
	})
}

// taskWork drops the last reference to a file, for which the kernel calls
// task_work_add. A mapping holds that reference, because since 6.6 close uses no task work.
func taskWork(o *options) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return o.repeat(func() error {
		fd, err := unix.Open(self, unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		mapping, err := unix.Mmap(fd, 0, 1, unix.PROT_READ, unix.MAP_PRIVATE)
		unix.Close(fd)
		if err != nil {
			return err
		}
		return unix.Munmap(mapping)
	})
}

// sleep calls hrtimer_nanosleep for the duration in the argument.
func sleep(o *options) error {
	d, err := time.ParseDuration(o.arg)
	if err != nil {
		return err
	}
	ts := unix.NsecToTimespec(d.Nanoseconds())
	return o.repeat(func() error {
		return unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil)
	})
}
