package kprobe

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/spectest"
)

// FuzzParse checks that the error for a refused line is a [*spec.Error] with a place
// in the line, and that an accepted line prints as a line that parses to the same
// tree and prints the same again.
func FuzzParse(f *testing.F) {
	for _, test := range refused {
		f.Add(test.line)
	}
	for _, test := range accepted {
		f.Add(test.line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		trace, err := Parse(line)
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

// FuzzParseFile checks that the traces of a file print as a file with the same
// traces.
func FuzzParseFile(f *testing.F) {
	f.Add("p:a vfs_read\n-:a\n# x\nvfs_read(count)\r\np:b vfs_read $arg* if x == 5 # y")
	f.Add("p:a f \\\"#\" if comm == '#' # x\nf(a == \"\\\"#\", b == '#') # y")
	f.Fuzz(func(t *testing.T, text string) {
		traces, err := ParseFile("x", text)
		if err != nil {
			requirePlace(t, err)
		}
		printed := ""
		for _, trace := range traces {
			if trace.Line == nil && Is(trace.String()) {
				return // f if x, with a blank before the if
			}
			printed += trace.String() + "\n"
		}
		again, err := ParseFile("x", printed)
		require.NoError(t, err)
		require.Len(t, again, len(traces))
		for i := range traces {
			require.Equal(t, traces[i].String(), again[i].String())
		}
	})
}

func requirePlace(t *testing.T, err error) {
	t.Helper()
	var refusal *spec.Error
	require.True(t, errors.As(err, &refusal))
	spectest.RequirePlace(t, err, refusal.Msg, refusal.Text, refusal.At.Start, refusal.At.End)
}
