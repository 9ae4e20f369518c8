package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/fixture"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// TestSchemaOfUnit verifies that all JSON printed for a unit with everything matches
// the schema.
func TestSchemaOfUnit(t *testing.T) {
	unit := recordUnit(t)
	p, err := render.New(unit, render.Options{Format: "json", Values: btfdump.Options{EmitStrings: true}})
	require.NoError(t, err)
	var all runtime.SessionCounts
	for i := range unit.Events {
		var ev runtime.Event
		require.NoError(t, ev.Decode(unit, fitRecord(unit, nil, i)))
		require.NoError(t, p.Event(&ev))
		all.Events = append(all.Events, runtime.Counts{EventType: unit.Events[i], Counters: compiler.Counters{Matched: 2}, Delivered: 1, Unread: 1})
	}
	p.End(render.NewSummary(unit, all))
	var written strings.Builder
	require.NoError(t, p.Flush(&written))
	text := written.String()
	require.NoError(t, fixture.Schema(t, "trace").Lines(text))
	require.Equal(t, len(unit.Events)+2, strings.Count(text, "\n"))
	require.Contains(t, text, `"group":"kprobes","event":"a"`)
}
