package spec

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/spec/spectest"
)

// FuzzParse checks that the error for refused text is an *Error with a place in the
// text, and that accepted text prints as a spec that parses to the same tree and
// prints the same again.
func FuzzParse(f *testing.F) {
	for _, test := range refused {
		f.Add(test.spec)
	}
	for _, test := range accepted {
		f.Add(test.spec)
	}
	f.Fuzz(func(t *testing.T, text string) {
		trace, err := Parse(text)
		if err != nil {
			requirePlace(t, err)
			return
		}
		printed := trace.String()
		again, err := Parse(printed)
		require.NoError(t, err)
		require.Equal(t, printed, again.String())
		require.Equal(t, spectest.Bare(trace), spectest.Bare(again))
	})
}

func requirePlace(t *testing.T, err error) {
	t.Helper()
	var refusal *Error
	require.True(t, errors.As(err, &refusal))
	spectest.RequirePlace(t, err, refusal.Msg, refusal.Text, refusal.At.Start, refusal.At.End)
}

// FuzzError checks that errors with any place and any text print in printable ASCII,
// and that the marked line fits on a terminal.
func FuzzError(f *testing.F) {
	f.Add("f(a", 3, 3)
	f.Add(strings.Repeat("b\u00e9\xff\n", 99), 150, 151)
	f.Fuzz(func(t *testing.T, text string, start, end int) {
		message := Errorf(text, Span{start, end}, "message").Error()
		spectest.RequirePrintable(t, message)
		lines := strings.Split(message, "\n")
		if len(lines) == 1 {
			return
		}
		require.Len(t, lines, 3)
		require.LessOrEqual(t, len(lines[1]), 100)
		require.LessOrEqual(t, len(lines[2]), 100)
		require.Contains(t, lines[2], "^")
	})
}

// FuzzNearest checks that the result is one of the candidates, that a name is nearest
// to itself, and that the order of the candidates does not matter.
func FuzzNearest(f *testing.F) {
	f.Add("cuont", "count", "file")
	f.Fuzz(func(t *testing.T, name, a, b string) {
		there, ok := Nearest(name, func(yield func(string) bool) { _ = yield(a) && yield(b) })
		back, okBack := Nearest(name, func(yield func(string) bool) { _ = yield(b) && yield(a) })
		require.Equal(t, ok, okBack)
		require.Equal(t, there, back)
		if ok {
			require.Contains(t, []string{a, b}, there)
		}
		if name == a && name != b && !strings.EqualFold(a, b) && name != "" && len(name) <= longestMisspelt {
			require.Equal(t, a, there)
		}
	})
}
