package run

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/report"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
)

// Ready notifies others that everything is attached.
type Ready struct {
	file string      // name of the file to create, or ""
	fd   *os.File    // file to write to, or nil
	told atomic.Bool // file has been created, and is still there
}

// ReadyOptions selects who is notified that everything is attached.
type ReadyOptions struct {
	File string // "" for none
	FD   int    // 0 for none
}

// OpenReady verifies, before anything is attached, that others can be notified. The file must
// not be one that outputs lead to, as it replaces what is there.
func OpenReady(o ReadyOptions, s *term.Streams) (*Ready, error) {
	r := &Ready{file: o.File}
	if o.FD != 0 {
		fd, err := inheritedFile(o.FD)
		if err != nil {
			return nil, err
		}
		r.fd = fd
	}
	if r.file == "" {
		return r, nil
	}
	// Tell would take the name of a device or a link, and Close remove it.
	if info, err := os.Lstat(r.file); err == nil && !info.Mode().IsRegular() {
		return nil, exit.Usagef("--ready-file replaces a file and removes it at the end, and %s is not a regular one: name another file", r.file)
	}
	if to := s.LeadTo(r.file); to != "" {
		return nil, exit.Usagef("--ready-file would replace %s, where %s goes: name another file", r.file, to)
	}
	if err := unix.Access(filepath.Dir(r.file), unix.W_OK|unix.X_OK); err != nil {
		return nil, fmt.Errorf("create %s: %w", r.file, err)
	}
	return r, nil
}

// ReadyFD parses the number of a file descriptor that ksnoop may have inherited.
func ReadyFD(option, text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n <= 2 {
		return 0, exit.Usagef("--%s is %q: it must be the number of an open file, from 3 on", option, text)
	}
	return int(n), nil
}

// inheritedFile returns a file that ksnoop has inherited.
func inheritedFile(n int) (*os.File, error) {
	// Files that the Go runtime has opened itself are closed on exec.
	flags, err := unix.FcntlInt(uintptr(n), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC != 0 {
		return nil, exit.Usagef("--ready-fd is %d: ksnoop has inherited no open file with that number", n)
	}
	unix.CloseOnExec(n) // otherwise the command after -- would keep it open
	return os.NewFile(uintptr(n), "--ready-fd"), nil
}

// Tell announces that everything is attached. All processes below a service inherit
// $NOTIFY_SOCKET, so it says on stderr that nobody is there, as sd_notify(3) asks for.
func (r *Ready) Tell(stderr io.Writer) error {
	if r.file != "" {
		if err := report.WriteWhole(r.file, fmt.Appendln(nil, os.Getpid())); err != nil {
			return fmt.Errorf("create the ready file: %w", err)
		}
		r.told.Store(true)
	}
	if err := notify(os.Getenv("NOTIFY_SOCKET")); err != nil {
		term.Say(stderr, []string{fmt.Sprintf("$NOTIFY_SOCKET is not told that everything is attached: %v: unset it, unless a service manager waits for ksnoop", err)})
	}
	if r.fd == nil {
		return nil
	}
	if _, err := r.fd.WriteString("\n"); err != nil {
		return fmt.Errorf("write to --ready-fd: %w", err)
	}
	return r.fd.Close()
}

// notify notifies systemd, or another program that implements sd_notify(3). The name
// of the socket begins with /, or for an abstract socket with @.
func notify(socket string) error {
	if socket == "" {
		return nil
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0) // package net would add 0.2 MB
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, []byte("READY=1"), 0, &unix.SockaddrUnix{Name: socket})
}

// Close removes the file. A nil Ready has none.
func (r *Ready) Close() {
	if r != nil && r.told.Swap(false) {
		os.Remove(r.file)
	}
}
