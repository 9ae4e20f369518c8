package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// ready tells others that everything is attached.
type ready struct {
	file string   // "": none is wanted
	fd   *os.File // nil: the same
	told bool     // file is there
}

// openReady makes sure, before anything is attached, that others can be told.
func openReady(c *invocation) (*ready, error) {
	r := &ready{file: c.String("ready-file")}
	if c.IsSet("ready-fd") {
		fd, err := readyFD(c.String("ready-fd"))
		if err != nil {
			return nil, err
		}
		r.fd = fd
	}
	if r.file == "" {
		return r, nil
	}
	if err := unix.Access(filepath.Dir(r.file), unix.W_OK|unix.X_OK); err != nil {
		return nil, fmt.Errorf("create %s in its directory: %w", r.file, err)
	}
	return r, nil
}

// readyFD is a file that ksnoop has inherited.
func readyFD(text string) (*os.File, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n <= 2 {
		return nil, usagef("--ready-fd is %q: it must be the number of an open file, from 3 on", text)
	}
	// What the Go runtime has opened itself is closed on exec.
	flags, err := unix.FcntlInt(uintptr(n), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC != 0 {
		return nil, usagef("--ready-fd is %d: ksnoop has inherited no open file with that number", n)
	}
	unix.CloseOnExec(int(n)) // the command behind -- would keep it open
	return os.NewFile(uintptr(n), "--ready-fd"), nil
}

// tell tells.
func (r *ready) tell() error {
	if r.file != "" {
		if err := writeWhole(r.file, fmt.Appendln(nil, os.Getpid())); err != nil {
			return fmt.Errorf("create the ready file: %w", err)
		}
		r.told = true
	}
	if err := notify(os.Getenv("NOTIFY_SOCKET")); err != nil {
		return fmt.Errorf("tell $NOTIFY_SOCKET: %w", err)
	}
	if r.fd == nil {
		return nil
	}
	if _, err := r.fd.WriteString("\n"); err != nil {
		return fmt.Errorf("write to --ready-fd: %w", err)
	}
	return r.fd.Close()
}

// notify tells systemd, or whoever stands in for it, see sd_notify(3). The name
// of the socket begins with / or, of an abstract one, with @.
func notify(socket string) error {
	if socket == "" {
		return nil
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0) // package net is 0.2 MB
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, []byte("READY=1"), 0, &unix.SockaddrUnix{Name: socket})
}

// writeWhole makes a file appear with all its content.
func writeWhole(name string, content []byte) error {
	temp := fmt.Sprintf("%s.%d", name, os.Getpid())
	err := os.WriteFile(temp, content, 0o644)
	if err == nil {
		err = os.Rename(temp, name)
	}
	if err != nil {
		os.Remove(temp)
	}
	return err
}

// close removes the file.
func (r *ready) close() {
	if r.told {
		os.Remove(r.file)
	}
}
