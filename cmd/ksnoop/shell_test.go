package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/fixture"
)

// asKsnoop is the variable that makes the test binary run as ksnoop, for the shells.
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

// installKsnoop makes a directory with a program called ksnoop, which prints its
// arguments, except that it answers completions.
func installKsnoop(t testing.TB) (dir string) {
	dir = t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\ncase $1 in\n__complete|completion) %s=1 exec %s \"$@\" ;;\nesac\n"+
		"printf '<%%s>' \"$@\"\necho END\n", asKsnoop, testBinary(t))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ksnoop"), []byte(script), 0o755))
	return dir
}

// shell is a shell on a terminal.
type shell struct {
	t        testing.TB
	terminal *os.File
	seen     []byte
}

// startShell starts a shell that finds ksnoop, in a directory with only the kernel's
// types in the file btf.
func startShell(t testing.TB, rows, columns uint16, env []string, args ...string) *shell {
	terminal, tty := fixture.OpenTerminal(t)
	require.NoError(t, unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns}))
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "btf"), fixture.Types(t), 0o644))
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

// patientWait is how long a shell may take on a busy machine.
const patientWait = time.Minute

// escapes matches control sequences of a terminal.
var escapes = regexp.MustCompile(`\x1b(\[[0-9;?>=]*[A-Za-z]|[()][A-Z0-9]|[=>])|[\x07\r]`)

// typed types keys and waits until the output of the shell since then contains want.
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

// TestInterruptInBackground verifies that SIGINT ends ksnoop even if a
// non-interactive shell has started it in the background, with SIGINT ignored. Here
// ksnoop waits for its specs.
func TestInterruptInBackground(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "specs"), 0o644))
	for _, tc := range []struct{ first, signal, status string }{
		{"", "INT", "130"}, {"", "TERM", "143"},
		{"trap '' INT TERM HUP", "INT", "130"}, {"trap '' INT TERM HUP", "HUP $p; kill -TERM", "143"}, // as nohup has it
	} {
		script := tc.first + `
"$0" check --btf /dev/null -f specs & p=$!
exec 3> specs # once ksnoop reads it
kill -` + tc.signal + ` $p; wait $p; echo $?`
		ctx, cancel := context.WithTimeout(t.Context(), patientWait)
		cmd := exec.CommandContext(ctx, "sh", "-c", script, testBinary(t))
		cmd.Dir, cmd.Env = dir, append(os.Environ(), asKsnoop+"=1")
		status, err := cmd.Output()
		cancel()
		require.NoError(t, err, "it goes on after SIG%s", tc.signal)
		require.Equal(t, tc.status+"\n", string(status))
	}
}
