package run

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestConstantMapping verifies that constant memory of the program may be given
// back, and written memory may not.
func TestConstantMapping(t *testing.T) {
	for line, want := range map[string]bool{
		"00400000-00748000 r-xp 00000000 fe:01 1234                       /bin/ksnoop":   true,
		"00748000-00b27000 r--p 00348000 fe:01 1234                       /bin/ksnoop":   true,
		"00b27000-00b8a000 rw-p 00727000 fe:01 1234                       /bin/ksnoop":   false,
		"00b27000-00b8a000 r--p 00727000 fe:01 1234                       /x/bin/ksnoop": false,
		"00b8a000-00bd0000 rw-p 00000000 00:00 0":                                        false,
		"7ffc1000-7ffc3000 r-xp 00000000 00:00 0                          [vdso]":        false,
	} {
		from, to, ok := constantMapping(line, "/bin/ksnoop")
		require.Equal(t, want, ok, line)
		require.True(t, !ok || from < to)
	}
	forgetCode() // the program still works
}
