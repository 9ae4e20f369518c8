package main

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whoever waits at $NOTIFY_SOCKET is told.
func TestNotify(t *testing.T) {
	for _, name := range []string{filepath.Join(t.TempDir(), "socket"), "@" + filepath.Base(t.TempDir())} {
		conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
		require.NoError(t, err)
		defer conn.Close()
		t.Setenv("NOTIFY_SOCKET", name)
		require.NoError(t, (&ready{}).tell())
		var buf [32]byte
		n, err := conn.Read(buf[:])
		require.NoError(t, err)
		require.Equal(t, "READY=1", string(buf[:n]))
	}
	t.Setenv("NOTIFY_SOCKET", "/nowhere/at/all")
	require.ErrorContains(t, (&ready{}).tell(), "tell $NOTIFY_SOCKET: no such file or directory")
	t.Setenv("NOTIFY_SOCKET", "")
	require.NoError(t, (&ready{}).tell())
}
