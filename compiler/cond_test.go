package compiler

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// TestMatches checks globs at their beginning, between and at the end of stars.
func TestMatches(t *testing.T) {
	letter := func(c byte) spec.GlobElement {
		return spec.GlobElement{Ranges: []spec.ByteRange{{Low: c, High: c}}}
	}
	for _, tc := range []struct {
		pattern     Pattern
		match, miss []string
	}{
		{Pattern{Text: "a*"}, []string{"a*"}, []string{"a", "ab", ""}},
		{Pattern{Glob: true}, []string{""}, []string{"a"}},
		{Pattern{Glob: true, Stars: 1}, []string{"", "a", "abc"}, nil},
		{Pattern{Glob: true, Elements: []spec.GlobElement{letter('a')}}, []string{"a"}, []string{"", "b", "aa", "ba"}},
		{Pattern{Glob: true, Elements: []spec.GlobElement{letter('a'), letter('b')}, Stars: 0b010}, []string{"ab", "aab", "axxb", "abab"}, []string{"a", "b", "abx", "xab", "aba"}},
		{Pattern{Glob: true, Elements: []spec.GlobElement{letter('a'), letter('b')}, Stars: 0b100}, []string{"ab", "abx", "abab"}, []string{"a", "aab", "xab", ""}},
		{Pattern{Glob: true, Elements: []spec.GlobElement{letter('a'), letter('b')}, Stars: 0b101}, []string{"ab", "aab", "xxabx"}, []string{"axb", "ba", "a"}},
	} {
		for _, s := range tc.match {
			require.True(t, tc.pattern.Matches(s), "%+v %q", tc.pattern, s)
		}
		for _, s := range tc.miss {
			require.False(t, tc.pattern.Matches(s), "%+v %q", tc.pattern, s)
		}
	}
}
