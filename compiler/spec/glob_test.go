package spec

import (
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
