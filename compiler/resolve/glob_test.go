package resolve

import (
	"fmt"
	"path"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzMatches checks that globs mean the same as in package path.
func FuzzMatches(f *testing.F) {
	for _, seed := range [][2]string{
		{"", ""}, {"*", ""}, {"**", "a"}, {"vfs_*", "vfs_read"}, {"*_read", "vfs_read"}, {"*read*", "vfs_readv"}, {"a*b*c", "abbc"},
		{"a*a", "a"}, {"ab*ba", "aba"}, {"*ab", "aab"}, {"*aab", "aaab"}, {"vfs_?ead", "vfs_read"}, {"tcp_[rs]*", "tcp_sendmsg"}, {"read", "read"}, {`\*`, "*"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, glob, name string) {
		for _, b := range []byte(glob + name) {
			if b == '/' || b == '!' || b >= 0x80 {
				t.Skip()
			}
		}
		want, err := path.Match(glob, name)
		require.Equal(t, want && err == nil, matches(glob, name), "%q %q", glob, name)
	})
}

// BenchmarkMatches looks through as many names as a kernel has symbols.
func BenchmarkMatches(b *testing.B) {
	names := make([]string, 150_000)
	for i := range names {
		names[i] = fmt.Sprintf("%x_inode_operation_%x", i%977, i)
	}
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for _, name := range names {
			if matches("*permission", name) {
				n++
			}
		}
		require.Zero(b, n)
	}
}
