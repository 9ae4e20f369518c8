package run

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
)

// TestNotify verifies that the socket $NOTIFY_SOCKET is notified.
func TestNotify(t *testing.T) {
	for _, name := range []string{filepath.Join(t.TempDir(), "socket"), "@" + filepath.Base(t.TempDir())} {
		conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
		require.NoError(t, err)
		defer conn.Close()
		t.Setenv("NOTIFY_SOCKET", name)
		require.NoError(t, (&Ready{}).Tell(io.Discard))
		var buf [32]byte
		n, err := conn.Read(buf[:])
		require.NoError(t, err)
		require.Equal(t, "READY=1", string(buf[:n]))
	}
	t.Setenv("NOTIFY_SOCKET", "/nowhere/at/all")
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	defer reader.Close()
	var stderr strings.Builder
	require.NoError(t, (&Ready{fd: writer}).Tell(&stderr), "a service that ksnoop is far below has ended")
	require.Equal(t, "ksnoop: $NOTIFY_SOCKET is not told that everything is attached: no such file or directory: "+
		"unset it, unless a service manager waits for ksnoop\n", stderr.String())
	text, err := io.ReadAll(reader)
	require.NoError(t, err)
	require.Equal(t, "\n", string(text))
	t.Setenv("NOTIFY_SOCKET", "")
	stderr.Reset()
	require.NoError(t, (&Ready{}).Tell(&stderr))
	require.Empty(t, stderr.String())
}

// TestReadyFileIsRegular verifies that nothing but a regular file can be replaced by the
// ready file, which is removed at the end.
func TestReadyFileIsRegular(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, syscall.Mkfifo(dir+"/pipe", 0o600))
	require.NoError(t, os.Symlink("regular", dir+"/link"))
	require.NoError(t, os.WriteFile(dir+"/regular", nil, 0o600))
	for _, name := range []string{dir, dir + "/pipe", dir + "/link", "/dev/null"} {
		_, err := OpenReady(ReadyOptions{File: name}, &term.Streams{})
		require.EqualError(t, err, "--ready-file replaces a file and removes it at the end, and "+name+" is not a regular one: name another file")
		require.True(t, exit.IsUsage(err))
	}
	for _, name := range []string{"regular", "new"} {
		_, err := OpenReady(ReadyOptions{File: dir + "/" + name}, &term.Streams{})
		require.NoError(t, err)
	}
	out, err := os.OpenFile(dir+"/regular", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer out.Close()
	_, err = OpenReady(ReadyOptions{File: dir + "/regular"}, &term.Streams{Out: term.NewPlain(out)})
	require.EqualError(t, err, "--ready-file would replace "+dir+"/regular, where stdout goes: name another file")
	require.True(t, exit.IsUsage(err))
}
