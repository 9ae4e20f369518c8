//go:build linux

package traffic

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// readyFD runs ksnoop with the spec in the argument, and calls vfs_read with a
// count of size when ksnoop is ready. ksnoop reports that on a pipe that it
// inherits.
func readyFD(o *options) error {
	end, write, err := os.Pipe()
	if err != nil {
		return err
	}
	ksnoop, err := o.ksnoop("--ready-fd", "3", o.arg)
	if err != nil {
		return err
	}
	ksnoop.ExtraFiles = []*os.File{write}
	if err := ksnoop.Start(); err != nil {
		return err
	}
	write.Close()
	if said, err := io.ReadAll(end); err != nil || string(said) != "\n" {
		return fmt.Errorf("ksnoop said %q: %v", said, err)
	}
	return errors.Join(o.reads(0), stop(ksnoop))
}

// container runs the kind contained in a new pid namespace.
func container(o *options) error {
	inside, err := o.again("contained", "", "-file", o.file)
	if err != nil {
		return err
	}
	inside.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWPID}
	return inside.Run()
}

// contained calls vfs_read n times with a count of size, in this process and in
// another one. ksnoop traces only the other process and writes to the file.
func contained(o *options) error {
	dir, err := os.MkdirTemp("", "contained")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	pid, wait, ready := filepath.Join(dir, "pid"), filepath.Join(dir, "wait"), filepath.Join(dir, "ready")
	other, err := o.again("read", "", "-pid", pid, "-wait", wait)
	if err != nil {
		return err
	}
	if err := other.Start(); err != nil {
		return err
	}
	ksnoop, err := o.ksnoop("-p", await(pid), "--ready-file", ready, fmt.Sprintf("vfs_read(count == %d)", o.size))
	if err != nil {
		return err
	}
	if err := ksnoop.Start(); err != nil {
		return err
	}
	await(ready)
	if err := o.reads(0); err != nil {
		return err
	}
	if err := os.Mkdir(wait, 0o755); err != nil {
		return err
	}
	return errors.Join(other.Wait(), stop(ksnoop))
}

// ksnoop returns a command that traces and writes to the file.
func (o *options) ksnoop(args ...string) (*exec.Cmd, error) {
	out, err := os.Create(o.file)
	if err != nil {
		return nil, err
	}
	return &exec.Cmd{Path: "/bin/ksnoop", Args: append([]string{"ksnoop", "trace"}, args...), Stdout: out, Stderr: os.Stderr}, nil
}

func stop(cmd *exec.Cmd) error {
	return errors.Join(cmd.Process.Signal(os.Interrupt), cmd.Wait())
}

// await waits for a line in a file and returns it.
func await(file string) string {
	for {
		text, err := os.ReadFile(file)
		if line, _, ok := strings.Cut(string(text), "\n"); err == nil && ok {
			return line
		}
		time.Sleep(pause)
	}
}
