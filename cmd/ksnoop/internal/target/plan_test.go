package target

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

func TestLeftOut(t *testing.T) {
	require.Empty(t, leftOut(nil))
	require.Equal(t, "3 left out: a", leftOut(map[string]int{"a": 3}))
	require.Equal(t, "15 left out (5: e; 4: d; 3: b; 1: a; 2 for other reasons)",
		leftOut(map[string]int{"a": 1, "b": 3, "c": 1, "d": 4, "e": 5, "f": 1}))
}

// TestShort verifies that a reason is cut between characters, not within one.
func TestShort(t *testing.T) {
	for reason, want := range map[string]string{
		strings.Repeat("x", 100):                                    strings.Repeat("x", 100),
		strings.Repeat("x", 101):                                    strings.Repeat("x", 97) + "...",
		strings.Repeat("x", 95) + "\u00e9\u00e9" + "more, and more": strings.Repeat("x", 95) + "\u00e9...",
		strings.Repeat("x", 96) + "\u00e9\u00e9" + "more, and more": strings.Repeat("x", 96) + "...",
		strings.Repeat("x", 94) + "\U0001f600" + "more, and more":   strings.Repeat("x", 94) + "...",
	} {
		require.Equal(t, want, Short(reason))
	}
}

func TestAreFunctions(t *testing.T) {
	require.Equal(t, "2 functions are", AreFunctions(2, &spec.Trace{}))
	require.Equal(t, "1 tracepoint is", AreFunctions(1, &spec.Trace{Tracepoint: true}))
	require.Equal(t, "15 iterators are", AreFunctions(15, &spec.Trace{Iterator: true}))
}

// TestParseNumber verifies that zeroes before a number do not mean octal.
func TestParseNumber(t *testing.T) {
	for text, want := range map[string]uint64{"10": 10, "010": 10, "0x10": 16, "0o10": 8, "1_000": 1000} {
		n, err := ParseNumber("count", text, 1<<20)
		require.NoError(t, err, text)
		require.Equal(t, want, n, text)
	}
	for _, text := range []string{"0", "000", "08x", "-1", "", "1048577"} {
		_, err := ParseNumber("count", text, 1<<20)
		require.EqualError(t, err, fmt.Sprintf("--count is %q: it must be a number from 1 to 1048576", text))
	}
}

// TestDescribePlan verifies that functions are counted for the trace that asked for them,
// also if two have the same text.
func TestDescribePlan(t *testing.T) {
	var traces []*spec.Trace
	plan := &compiler.Plan{}
	for range 2 {
		trace, err := spec.Parse("tp:x_*()")
		require.NoError(t, err)
		traces = append(traces, trace)
		for range 3 {
			plan.Probes = append(plan.Probes, &compiler.Probe{Trace: trace, Asked: trace})
		}
	}
	var text strings.Builder
	describePlan(&text, traces, plan)
	require.Equal(t, strings.Repeat("ksnoop: tp:x_*: 3 tracepoints are traced\n", 2), text.String())
}
