package compilertest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
)

// ParseAll parses specs and kprobe_events lines, one from each argument.
func ParseAll(t *testing.T, lines ...string) []*spec.Trace {
	var traces []*spec.Trace
	for _, line := range lines {
		trace, err := kprobe.ParseAny(line)
		require.NoError(t, err)
		traces = append(traces, trace)
	}
	return traces
}
