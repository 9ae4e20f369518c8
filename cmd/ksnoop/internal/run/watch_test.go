package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// TestLossNotice verifies that losses are reported in one sentence, with the side
// that has lost the most.
func TestLossNotice(t *testing.T) {
	p := &compiler.Probe{Func: &compiler.Function{Name: "f"}}
	grown := []runtime.Counts{
		{EventType: &compiler.EventType{Probe: p, Kind: compiler.EntryEvent}, Counters: compiler.Counters{Lost: 1}},
		{EventType: &compiler.EventType{Probe: p, Kind: compiler.ReturnEvent}, Counters: compiler.Counters{Lost: 2}},
	}
	require.Equal(t, "lost 3 events of f (return) and 1 more so far: the ring buffer is full; --pages makes it larger", lossNotice(grown))
}
