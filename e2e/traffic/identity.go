//go:build linux

package traffic

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// become takes the name, the user and the cgroup of the options.
func (o *options) become() error {
	if o.cgroup != "" {
		if err := writeNumber(filepath.Join(o.cgroup, "cgroup.procs"), os.Getpid()); err != nil {
			return err
		}
	}
	if o.uid != 0 {
		if err := unix.Setresuid(o.uid, o.uid, o.uid); err != nil {
			return err
		}
	}
	if o.comm == "" {
		return nil
	}
	return os.WriteFile("/proc/thread-self/comm", []byte(o.comm), 0)
}

// again returns a command that runs traffic with this command's n and size.
func (o *options) again(kind, arg string, more ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := append([]string{"traffic", kind, "-n", strconv.Itoa(o.n), "-size", strconv.Itoa(o.size)}, more...)
	if arg != "" {
		args = append(args, arg)
	}
	return &exec.Cmd{Path: self, Args: args, Stderr: os.Stderr}, nil
}

// after returns the options without those that start has used.
func (o *options) after() *options {
	rest := *o
	rest.pid, rest.tid, rest.wait = "", "", ""
	return &rest
}

// reads calls vfs_read n times with a count of size+more.
func (o *options) reads(more int) error {
	rest := *o
	rest.size += more
	rest.file = ""
	return read(&rest)
}
