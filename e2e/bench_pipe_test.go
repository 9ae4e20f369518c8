//go:build linux

package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPipedSubject verifies that all output of a subject that writes more to a pipe than
// the pipe holds is in the file when the subject has ended.
func TestPipedSubject(t *testing.T) {
	s := invocation{path: "/bin/sh", args: []string{"-c", "head -c 300000 /dev/zero; echo end"}, piped: true}.start(t)
	<-s.ended
	said, err := s.stop()
	require.NoError(t, err)
	require.Equal(t, append(make([]byte, 300000), "end\n"...), said)
	require.EqualValues(t, len(said), s.printed())
}
