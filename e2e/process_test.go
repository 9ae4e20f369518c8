//go:build linux

package e2e

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// newFullPipe returns the write end of a pipe that is full and has no reader
// that empties it.
func newFullPipe(t *testing.T) *os.File {
	var fds [2]int
	require.NoError(t, unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK))
	for page := make([]byte, 4096); ; {
		if _, err := unix.Write(fds[1], page); errors.Is(err, unix.EAGAIN) {
			break
		} else {
			require.NoError(t, err)
		}
	}
	require.NoError(t, unix.SetNonblock(fds[1], false))
	t.Cleanup(func() { unix.Close(fds[0]) })
	w := os.NewFile(uintptr(fds[1]), "full")
	t.Cleanup(func() { w.Close() })
	return w
}

// startKsnoop starts ksnoop trace and returns a reader for its messages.
func startKsnoop(t *testing.T, stdout *os.File, args ...string) (*exec.Cmd, io.Reader) {
	cmd := exec.Command("/bin/ksnoop", append([]string{"trace"}, args...)...)
	cmd.Stdout = stdout
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	return cmd, stderr
}

// awaitLine reads until it finds the line.
func awaitLine(t *testing.T, r io.Reader, line string) {
	var read []string
	for s := bufio.NewScanner(r); s.Scan(); {
		if s.Text() == line {
			return
		}
		read = append(read, s.Text())
	}
	t.Fatalf("%q does not come: %q", line, read)
}
