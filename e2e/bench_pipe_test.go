//go:build linux

package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPipedSubject verifies that all that a subject writes to a pipe, more than a pipe
// holds, is there when it has ended.
func TestPipedSubject(t *testing.T) {
	s := invocation{path: "/bin/sh", args: []string{"-c", "head -c 300000 /dev/zero; echo end"}, piped: true}.start(t)
	<-s.ended
	said, err := s.stop()
	require.NoError(t, err)
	require.Equal(t, append(make([]byte, 300000), "end\n"...), said)
	require.EqualValues(t, len(said), s.printed())
}
