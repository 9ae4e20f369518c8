package runtime

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzTracefs verifies that reading any files of tracefs ends, with no more functions
// than lines, and only names of events that are there.
func FuzzTracefs(f *testing.F) {
	f.Add([]byte("vfs_read\n__ftrace_invalid_address___128\nnf_hook [nf_tables]\n\nfoo.isra.0"), []byte(profile))
	f.Add([]byte(events), []byte(profile))
	f.Add(bytes.Repeat([]byte("x"), 70_000), []byte("\x1b[2J 1 18446744073709551616\n"))
	f.Fuzz(func(t *testing.T, list, counts []byte) {
		n := 0
		_ = parseHooks(bytes.NewReader(list), func(function, module []byte) {
			require.NotEmpty(t, function)
			require.NotContains(t, string(function)+string(module), "\n")
			n++
		})
		require.LessOrEqual(t, n, bytes.Count(list, []byte("\n"))+1)
		for _, event := range staleEvents(bytes.NewReader(list), func(int) bool { return true }) {
			require.Contains(t, string(list), event)
		}
		if _, err := parseProfile(bytes.NewReader(list), bytes.NewReader(counts), "ksnoop_7_1"); err != nil {
			require.NotEmpty(t, err.Error())
		}
	})
}
