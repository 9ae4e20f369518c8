package spec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseGlob(t *testing.T) {
	one := func(c byte) GlobElement { return GlobElement{Ranges: []ByteRange{{c, c}}} }
	for _, test := range []struct {
		pattern string
		want    []GlobElement
	}{
		{"", nil},
		{"ab", []GlobElement{one('a'), one('b')}},
		{"a*", []GlobElement{one('a'), {Star: true}}},
		{"***", []GlobElement{{Star: true}}},
		{"?", []GlobElement{{Not: true}}},
		{"[a]", []GlobElement{one('a')}},
		{"[a-f_]", []GlobElement{{Ranges: []ByteRange{{'a', 'f'}, {'_', '_'}}}}},
		{"[!a-f]", []GlobElement{{Not: true, Ranges: []ByteRange{{'a', 'f'}}}}},
		{"[-a]", []GlobElement{{Ranges: []ByteRange{{'-', '-'}, {'a', 'a'}}}}},
		{"[a-]", []GlobElement{{Ranges: []ByteRange{{'a', 'a'}, {'-', '-'}}}}},
		{"[a!]", []GlobElement{{Ranges: []ByteRange{{'a', 'a'}, {'!', '!'}}}}},
		{"[*?[]", []GlobElement{{Ranges: []ByteRange{{'*', '*'}, {'?', '?'}, {'[', '['}}}}},
		{"]-!", []GlobElement{one(']'), one('-'), one('!')}},
		{`\*\\`, []GlobElement{one('*'), one('\\')}},
	} {
		elements, err := ParseGlob(test.pattern)
		require.NoError(t, err, test.pattern)
		require.Equal(t, test.want, elements, test.pattern)
		require.Equal(t, strings.ContainsAny(test.pattern, "*?["), IsGlob(test.pattern))
	}
}

func TestParseGlobRefuses(t *testing.T) {
	_, err := ParseGlob("eth[0-9")
	require.EqualError(t, err, `
the '[' has no closing ']'
  eth[0-9
     ^`[1:])
}

func TestGlobElementMatch(t *testing.T) {
	for _, test := range []struct{ pattern, matches, differs string }{
		{"a", "a", "bA"},
		{"?", "a*?", ""},
		{"*", "a*?", ""},
		{"[a-c_]", "abc_", "dA-"},
		{"[!a-c_]", "dA-", "abc_"},
	} {
		elements, err := ParseGlob(test.pattern)
		require.NoError(t, err)
		require.Len(t, elements, 1)
		for _, c := range []byte(test.matches) {
			require.True(t, elements[0].Match(c), "%s %c", test.pattern, c)
		}
		for _, c := range []byte(test.differs) {
			require.False(t, elements[0].Match(c), "%s %c", test.pattern, c)
		}
	}
}

func TestMatches(t *testing.T) {
	for _, test := range []struct {
		glob, names string // those that begin with ! do not match
	}{
		{"read", "read !reads !rea"},
		{"vfs_*", "vfs_read vfs_ !vfs"},
		{"*read*", "vfs_readv read !vfs_write"},
		{"a*b?c", "abxc abbxbxc !abc !abxd"},
		{"tcp_[rs]*", "tcp_sendmsg tcp_recvmsg !tcp_init"},
		{"*[!a-y]", "xyz !zxy !"},
		{"vfs_[r-]*", "vfs_read vfs_- !vfs_write"},
		{"vfs_[-r]*", "vfs_read vfs_- !vfs_write"},
		{"[a-c-e]", "b - e !d"},
		{"[!-a]", "b !- !a"},
		{"x[+--]", "x, x- !x."},
		{"*[", "![ !a"},
	} {
		for _, name := range strings.Split(test.names, " ") {
			name, differs := strings.CutPrefix(name, "!")
			require.Equal(t, !differs, Matches(test.glob, name), "%s %s", test.glob, name)
		}
	}
}

// FuzzMatches checks that a glob matches what its elements match one by one, and that one
// that is refused matches nothing.
func FuzzMatches(f *testing.F) {
	for _, seed := range [][2]string{
		{"", ""}, {"*", ""}, {"**", "a"}, {"vfs_*", "vfs_read"}, {"*_read", "vfs_read"}, {"*read*", "vfs_readv"}, {"a*b*c", "abbc"},
		{"a*a", "a"}, {"ab*ba", "aba"}, {"*ab", "aab"}, {"*aab", "aaab"}, {"vfs_?ead", "vfs_read"}, {"tcp_[rs]*", "tcp_sendmsg"}, {"read", "read"}, {`\*`, "*"},
		{"*[r-]?", "vfs_-a"}, {"a*[", "a"}, {"*a?[!b]*c", "aaxbaxxc"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, glob, name string) {
		elements, err := ParseGlob(glob)
		matched := make([]bool, len(name)+1) // by the elements so far: the beginnings of the name
		matched[0] = true
		for _, e := range elements {
			next := make([]bool, len(name)+1)
			for n := range next {
				next[n] = n > 0 && e.Match(name[n-1]) && (matched[n-1] || e.Star && next[n-1]) || e.Star && matched[n]
			}
			matched = next
		}
		require.Equal(t, err == nil && matched[len(name)], Matches(glob, name), "%q %q", glob, name)
	})
}

// BenchmarkMatches looks through as many names as a kernel has symbols.
func BenchmarkMatches(b *testing.B) {
	names := make([]string, 150_000)
	for i := range names {
		names[i] = fmt.Sprintf("%x_inode_operation_%x", i%977, i)
	}
	for _, glob := range []string{"*permission", "*_permissio[n-]"} {
		b.Run(glob, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				for _, name := range names {
					if Matches(glob, name) {
						n++
					}
				}
				require.Zero(b, n)
			}
		})
	}
}

// FuzzParseGlob checks that the error for a refused pattern has a place in it, and
// that an accepted pattern has no more elements than bytes.
func FuzzParseGlob(f *testing.F) {
	f.Add(`eth[0-9!]*\??[!a-]`)
	f.Fuzz(func(t *testing.T, pattern string) {
		elements, err := ParseGlob(pattern)
		if err != nil {
			requirePlace(t, err)
			return
		}
		require.LessOrEqual(t, len(elements), len(pattern))
	})
}
