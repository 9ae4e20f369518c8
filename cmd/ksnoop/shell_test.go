package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// asKsnoop makes the test binary be ksnoop, as which shells run it.
const asKsnoop = "KSNOOP_TEST_AS_KSNOOP"

func TestMain(m *testing.M) {
	if os.Getenv(asKsnoop) != "" {
		main()
	}
	os.Exit(m.Run())
}

func testBinary(t testing.TB) string {
	self, err := os.Executable()
	require.NoError(t, err)
	return self
}

// installKsnoop makes a directory with a program called ksnoop, which shows its
// arguments unless it is to complete some.
func installKsnoop(t testing.TB) (dir string) {
	dir = t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\ncase $1 in\n__complete|completion) %s=1 exec %s \"$@\" ;;\nesac\n"+
		"printf '<%%s>' \"$@\"\necho END\n", asKsnoop, testBinary(t))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ksnoop"), []byte(script), 0o755))
	return dir
}

// shell is a shell at a terminal.
type shell struct {
	t        testing.TB
	terminal *os.File
	seen     []byte
}

// startShell starts one, whose directory is empty but for the kernel's types in
// the file btf, and which finds ksnoop.
func startShell(t testing.TB, rows, columns uint16, env []string, args ...string) *shell {
	terminal, tty := openTerminal(t)
	require.NoError(t, unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns}))
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "btf"), kernelTypes(t), 0o644))
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append([]string{"HOME=" + dir, "TERM=ansi", "LC_ALL=C.UTF-8", "PATH=" + installKsnoop(t) + ":" + os.Getenv("PATH")}, env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	tty.Close()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
		terminal.Close()
	})
	return &shell{t: t, terminal: terminal}
}

// openTerminal makes a terminal: what a program sees, and the other end of it.
func openTerminal(t testing.TB) (terminal, tty *os.File) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	return os.NewFile(uintptr(fd), "terminal"), tty
}

// patientWait is how long a shell may take on a machine with much to do.
const patientWait = 12 * time.Second

// escapes are what a terminal obeys.
var escapes = regexp.MustCompile(`\x1b(\[[0-9;?>=]*[A-Za-z]|[()][A-Z0-9]|[=>])|[\x07\r]`)

// typed types keys and waits until what the shell shows since then has some text.
func (s *shell) typed(keys, want string) string {
	s.t.Helper()
	_, err := s.terminal.WriteString(keys)
	require.NoError(s.t, err)
	s.seen = nil
	require.NoError(s.t, s.terminal.SetReadDeadline(time.Now().Add(patientWait)))
	for part := make([]byte, 4096); ; {
		shown := string(escapes.ReplaceAll(s.seen, nil))
		if strings.Contains(shown, want) {
			return shown
		}
		n, err := s.terminal.Read(part)
		require.NoError(s.t, err, "%q instead of %q", shown, want)
		s.seen = append(s.seen, bytes.ReplaceAll(part[:n], []byte(" \b"), nil)...)
	}
}
