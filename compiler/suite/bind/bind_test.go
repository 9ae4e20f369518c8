package bind

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/suite"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// asserted returns a suite with one assertion, whose spec this is.
func asserted(t *testing.T, text string) *suite.Suite {
	s, err := suite.Parse("f", "ksnoop-probes 1\nsuite s\n"+text+"\n")
	require.NoError(t, err, text)
	return s
}

// TestChoose lists the functions that specs of probe files mean, and why they mean none.
func TestChoose(t *testing.T) {
	kernel := compilertest.NewTarget(t, compilertest.WithTrampoline)
	const unknown = "there is no function unknown in this kernel"
	for _, tc := range []struct{ text, want, err string }{
		{"read()", "read", ""},
		{"read(nothing_of_it)", "read", ""}, // why it does not fit is found later
		{"unknown()", "", unknown},
		{"any-of {unknown read send}()", "read", ""},
		{"unk*()", "", "no function of this kernel matches 'unk*'; functions of a module need its name: MODULE:unk*; tracepoints are tp:unk*"},
		{"rea*()", "rea*", ""},
		{"gone()", "", "gone has a type but no code in this kernel: it was inlined everywhere, or is start-up code that was freed"},
		// Both functions of a span must be there.
		{"read() => send() on $tid", "read", ""},
		{"read() => unknown() on $tid", "", unknown},
		{"unknown() => read() on $tid", "", unknown},
		{"any-of {unknown read}() => send() on $tid", "read", ""},
		// The only copy stands for a function, if no argument is named.
		{"cloned()", "cloned.isra.0", ""},
		{"cloned(return) if $pid == 1", "cloned.isra.0", ""},
		{"any-of {unknown cloned}()", "cloned.isra.0", ""},
		{"any-of {cloned read}()", "read", ""},
		{"cloned", "", "this kernel has cloned only as cloned.isra.0, with arguments that may differ from its type; to trace it anyway, use this name: cloned.isra.0"},
		{"cloned($arg1)", "", "this kernel has cloned only as cloned.isra.0, with arguments that may differ from its type; to trace it anyway, use this name: cloned.isra.0"},
		{"cloned() => read() on $tid", "cloned.isra.0", ""},
		{"cloned() => twice() on a", "", "this kernel has cloned only as cloned.isra.0, with arguments that may differ from its type; to trace it anyway, use this name: cloned.isra.0"},
		{"cloned() => unknown() on $tid", "", "this kernel has cloned only as cloned.isra.0, with arguments that may differ from its type; to trace it anyway, use this name: cloned.isra.0"},
		// Lines of kprobe_events may be about symbols without types.
		{`"p assembly"`, "assembly", ""},
		{`"p unknown"`, "", unknown + "; a variable is shown by ksnoop print '@unknown'"},
	} {
		chosen, err := Choose(asserted(t, "assert a "+tc.text+" never").Asserts[0].Path[0].AnyOf, kernel)
		if tc.err != "" {
			require.Error(t, err, tc.text)
			require.Equal(t, tc.err, Sentence(err), tc.text)
			continue
		}
		require.NoError(t, err, tc.text)
		require.Equal(t, tc.want, chosen.Func.Name, tc.text)
	}
}

// TestUnmet lists what kernels lack that files require.
func TestUnmet(t *testing.T) {
	kernel := compilertest.NewTarget(t, compilertest.WithTrampoline)
	for text, want := range map[string]string{
		"require kernel >= 6.1":      "",
		"require kernel < 6.1":       "the file requires kernel < 6.1, and this is 6.12.3",
		"require func read":          "",
		"require func unknown":       "the file requires func unknown: there is no function unknown in this kernel",
		"require btf struct buf":     "",
		"require btf union buf":      "the file requires btf union buf",
		"require btf struct unknown": "the file requires btf struct unknown",
	} {
		require.Equal(t, want, Unmet(asserted(t, text+"\nassert a read() never").Requires, kernel, "6.12.3"), text)
	}
	require.Empty(t, Unmet(asserted(t, "require kernel < 6.1\nassert a read() never").Requires, kernel, ""), "the release is unknown")
}

// TestOnlyCopy verifies that if a function exists only as one changed copy, the copy
// is counted, if the spec names no argument.
func TestOnlyCopy(t *testing.T) {
	symbols, err := kallsyms.Read(strings.NewReader("ffffffff81000000 t gone.isra.0\nffffffff81000100 t two.isra.0\nffffffff81000200 t two.constprop.0\n"), nil)
	require.NoError(t, err)
	kernel := &compiler.Target{Symbols: symbols}
	for text, want := range map[string]string{
		"gone()": "gone.isra.0", "gone(return < 0) if $pid == 1": "gone.isra.0", "gone": "", "gone(x)": "", "gone() if x->y": "", "gone($arg1)": "", "two()": "", "other()": "",
	} {
		trace, _, err := spec.ParseIn(text, 0)
		require.NoError(t, err, text)
		got := ""
		if copied := onlyCopy([]*spec.Trace{trace}, kernel); copied != nil {
			got = copied.Func.Name
		}
		require.Equal(t, want, got, text)
	}
}

// TestRows lists the conditions on rows that are refused because of the types of a kernel,
// and some that are not.
func TestRows(t *testing.T) {
	kernel := compilertest.NewTarget(t, compilertest.WithTrampoline)
	const long = " is size_t (long unsigned int) and holds 0 to 18446744073709551615"
	const sum = " is a sum of unsigned numbers and holds 0 to 18446744073709551615"
	for _, tc := range []struct{ spec, condition, want string }{
		{"read(max(count))", "max(count) < 1", ""},
		{"read(max(count))", "max(count) < -10", "-10 does not fit 'max(count)', which" + long},
		{"read(min(count))", "min(count) >= 0", "'min(count) >= 0' always holds: 'min(count)'" + long},
		{"read(avg(count))", "avg(count) < 0", "'avg(count) < 0' can never hold: 'avg(count)'" + long},
		{"read(max($duration))", "max($duration) >= 0", "'max($duration) >= 0' always holds: 'max($duration)' is u64 (long long unsigned int) and holds 0 to 18446744073709551615"},
		{"read(max($duration))", "max($duration) < 10ms", ""},
		{"read(max($duration >> 1))", "max($duration >> 1) < 10ms", ""},
		{"read() => send(max($duration)) on $tid", "max($duration) == -1", "-1 does not fit 'max($duration)', which is u64 (long long unsigned int) and holds 0 to 18446744073709551615"},
		{"work(max(now))", "max(now) < 5", "5 does not fit 'max(now)', which is _Bool and holds 0 to 1"},
		{"read(max(count & 6))", "max(count & 6) == 3", "'max(count & 6) == 3' can never hold: 'max(count & 6)' has no other bits than 0x6"},
		{"read(avg(count & 6))", "avg(count & 6) == 3", ""},
		// A sum may be above all of its values.
		{"work(sum(now))", "sum(now) < 5", ""},
		{"read(sum(count & 6))", "sum(count & 6) == 30", ""},
		{"read(sum(count))", "sum(count) >= 0", "'sum(count) >= 0' always holds: 'sum(count)'" + sum},
		{"read(sum(return))", "sum(return) >= 0", ""},
		{"r*(max(count))", "max(count) >= 0", "'max(count) >= 0' always holds: 'max(count)'" + long},
	} {
		a := asserted(t, "assert a "+tc.spec+" each "+tc.condition).Asserts[0]
		trace := a.Path[0].AnyOf[0]
		wishes := resolve.Wishes{Measures: map[*spec.Trace]compiler.Measure{trace: compiler.Calls}, Rows: map[*spec.Trace]*spec.Item{trace: a.Row.Item}}
		_, err := resolve.All([]*spec.Trace{trace}, kernel, wishes)
		if tc.want == "" {
			require.NoError(t, err, tc.condition)
			continue
		}
		require.Error(t, err, tc.condition)
		require.Equal(t, tc.want, Sentence(err))
	}
}
