package run

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNotify verifies that the socket $NOTIFY_SOCKET is notified.
func TestNotify(t *testing.T) {
	for _, name := range []string{filepath.Join(t.TempDir(), "socket"), "@" + filepath.Base(t.TempDir())} {
		conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
		require.NoError(t, err)
		defer conn.Close()
		t.Setenv("NOTIFY_SOCKET", name)
		require.NoError(t, (&Ready{}).Tell())
		var buf [32]byte
		n, err := conn.Read(buf[:])
		require.NoError(t, err)
		require.Equal(t, "READY=1", string(buf[:n]))
	}
	t.Setenv("NOTIFY_SOCKET", "/nowhere/at/all")
	require.ErrorContains(t, (&Ready{}).Tell(), "tell $NOTIFY_SOCKET: no such file or directory")
	t.Setenv("NOTIFY_SOCKET", "")
	require.NoError(t, (&Ready{}).Tell())
}
