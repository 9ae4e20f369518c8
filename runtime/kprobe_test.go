package runtime

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseHooks(t *testing.T) {
	const text = "vfs_read\n__ftrace_invalid_address___128\nnf_hook [nf_tables]\n\nfoo.isra.0\n"
	var got []string
	require.NoError(t, parseHooks(strings.NewReader(text), func(function, module []byte) {
		got = append(got, string(function)+"|"+string(module))
	}))
	require.Equal(t, []string{"vfs_read|", "nf_hook|nf_tables", "foo.isra.0|"}, got)
}

const (
	events = "p:kprobes/vfs_read vfs_read\n" +
		"r16:ksnoop_7_1_a0b1/vfs_read vfs_read\n" +
		"r4096:ksnoop_7_12_a0b1/do_exit do_exit\n" +
		"r16:ksnoop_8_1_a0b1/vfs_read vfs_read\n"
	profile = "  vfs_read     1 0\n  vfs_read    20   5\n  do_exit  3 4\n  vfs_read 0 0\n"
)

func TestParseProfile(t *testing.T) {
	for _, tc := range []struct {
		group, profile string
		missed         uint64
		err            string
	}{
		{"ksnoop_7_1", profile, 5, ""},
		{"ksnoop_7_12", profile, 4, ""},
		{"ksnoop_9_1", profile, 0, "no event of group ksnoop_9_1"},
		{"ksnoop_7_12", "  a 1 2\n" + profile, 0, "found event vfs_read instead of do_exit: another program changes the probes"},
		{"ksnoop_7_1", "  vfs_read 1 2\n  vfs_read\n", 0, `parse "  vfs_read": EOF`},
	} {
		missed, err := parseProfile(strings.NewReader(events), strings.NewReader(tc.profile), tc.group)
		if tc.err != "" {
			require.EqualError(t, err, tc.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, tc.missed, missed)
	}
}

func TestStaleEvents(t *testing.T) {
	stale := staleEvents(strings.NewReader(events), func(pid int) bool { return pid == 8 })
	require.Equal(t, []string{"ksnoop_7_1_a0b1/vfs_read", "ksnoop_7_12_a0b1/do_exit"}, stale)
}

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
