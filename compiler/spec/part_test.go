package spec

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/spec/spectest"
)

// TestParseIn checks that a spec ends at the first word that cannot belong to it.
func TestParseIn(t *testing.T) {
	for _, test := range []struct{ line, canonical, rest string }{
		{"vfs_read", "vfs_read", ""},
		{"vfs_read never", "vfs_read", "never"},
		{"vfs_read() never", "vfs_read()", "never"},
		{"vfs_read( )if count > 5", "vfs_read() if count > 5", ""},
		{"f(return < 0)at-least 1", "f(return < 0)", "at-least 1"},
		{"f(count > 5) count 3..5", "f(count > 5)", "count 3..5"},
		{"f if count > 5 count 3..5", "f if count > 5", "count 3..5"},
		{"f if count count 3..5", "f if count", "count 3..5"},
		{"f if (max != 0) max < 1ms", "f if max != 0", "max < 1ms"},
		{"f if a || never never", "f if a || never", "never"},
		{"f if a == never never", "f if a == never", "never"},
		{"f(a) ~ g() difference", "f(a)", "~ g() difference"},
		{"f ~ g", "f", "~ g"},
		{"f if a == 1 ~ g", "f if a == 1", "~ g"},
		{`f if a ~ "x) never" ~ g`, `f if a ~ "x) never"`, "~ g"},
		{"tp:sched_switch p99.9 < 1ms", "tp:sched_switch", "p99.9 < 1ms"},
		{"tcp_* at-least 1", "tcp_*", "at-least 1"},
		{"f) never", "f", ") never"},
		{"f is-err", "f", "is-err"},
	} {
		const before = "assert x "
		trace, end, err := ParseIn(before+test.line, len(before))
		require.NoError(t, err, test.line)
		require.Equal(t, test.canonical, trace.String(), test.line)
		require.Equal(t, test.rest, (before + test.line)[end:], test.line)
		require.Equal(t, trace.Func.Name, trace.Text[trace.Func.At.Start:trace.Func.At.End], test.line)
	}
}

func TestParseInErrors(t *testing.T) {
	for line, want := range map[string]string{
		"assert x f(a = 5) never": `
'=' is not a comparison
  assert x f(a = 5) never
               ^
  did you mean '=='?`,
		"assert x f(a never": `
expected ',' or ')', not 'never'
  assert x f(a never
               ^^^^^`,
		"assert x f if never never": ``,
		"assert x f if": `
a condition is missing after 'if'
  assert x f if
               ^`,
	} {
		_, _, err := ParseIn(line, len("assert x "))
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, want[1:])
	}
}

// FuzzParseIn checks that a spec in a line parses like the spec alone, whatever text
// follows it.
func FuzzParseIn(f *testing.F) {
	for _, test := range accepted {
		f.Add(test.spec + " never")
	}
	f.Fuzz(func(t *testing.T, text string) {
		whole, end, err := ParseIn(text, 0)
		if err != nil {
			requirePlace(t, err)
			return
		}
		require.LessOrEqual(t, end, len(text))
		moved, movedEnd, err := ParseIn("  "+text, 2)
		require.NoError(t, err)
		require.Equal(t, end+2, movedEnd)
		again, _, err := ParseIn(whole.String(), 0)
		require.NoError(t, err)
		require.Equal(t, whole.String(), again.String())
		require.Equal(t, spectest.Bare(whole), spectest.Bare(again))
		require.Equal(t, spectest.Bare(whole), spectest.Bare(moved))
		if alone, err := Parse(text[:end]); err == nil {
			require.Equal(t, spectest.Bare(whole), spectest.Bare(alone))
		} else {
			require.NotNil(t, whole.Items)
		}
	})
}
