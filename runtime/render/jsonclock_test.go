package render

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// testSystem is the system of the events of tests, and testClock has its time of day.
var (
	testSystem = &runtime.System{Kernel: "6.12.0\x1b", Host: "box\x1b", Boot: "cafe"}
	testClock  = Look{wall: func() time.Duration { return time.Unix(1795388222, 1).Sub(time.Unix(0, 0)) }}
)

// TestJSONWall verifies that all lines with a time have the time of day if it is asked
// for.
func TestJSONWall(t *testing.T) {
	look := testClock
	look.Time = Wall
	const day = `"wall":"2026-11-22T22:57:02.123456790Z"`
	ev := newEvent(compiler.EntryEvent, runtime.Value{Value: plain("n", intType), Data: []byte{1, 0, 0, 0}})
	for _, style := range []Clock{Wall, Mono} {
		look.Time = style
		p := newJSON(Options{Values: dumpDefaults, System: testSystem, Look: look}, &compiler.Unit{})
		p.begin()
		require.NoError(t, p.Event(ev))
		p.Loss(Loss{Time: 123456789})
		require.NoError(t, p.Table(&runtime.Table{Label: "f", Time: 123456789}))
		lines := strings.Split(strings.TrimSpace(string(p.text)), "\n")
		require.Len(t, lines, 4)
		for _, line := range lines[1:] {
			if style == Wall {
				require.Contains(t, line, `"time":123456789,`+day)
			} else {
				require.NotContains(t, line, "wall")
			}
		}
	}
}

// TestJSONClock verifies that a line has the clocks when they are no longer as they were
// printed, before the next line, and once.
func TestJSONClock(t *testing.T) {
	now := []time.Duration{time.Hour}
	look := Look{Time: Wall, wall: func() time.Duration {
		first := now[0]
		if len(now) > 1 {
			now = now[1:]
		}
		return first
	}}
	p := newJSON(Options{Values: dumpDefaults, System: testSystem, Look: look}, &compiler.Unit{})
	p.begin()
	ev := newEvent(compiler.EntryEvent)
	printed := func(offsets ...time.Duration) (types []string) {
		now = offsets
		require.NoError(t, p.Event(ev))
		require.NoError(t, p.Event(ev))
		var text strings.Builder
		require.NoError(t, p.Flush(&text))
		for line := range strings.Lines(text.String()) {
			_, line, _ = strings.Cut(line, `{"type":"`)
			kind, rest, _ := strings.Cut(line, `"`)
			if kind == "clock" {
				kind += rest
			} else {
				require.Contains(t, rest+`"version"`, map[string]string{"run": "version"}[kind])
			}
			types = append(types, strings.TrimSpace(kind))
		}
		return types
	}
	require.Equal(t, []string{"run", "event", "event"}, printed(time.Hour))
	require.Equal(t, []string{"event", "event"}, printed(time.Hour+steady))
	require.Equal(t, []string{`clock,"realtime":7200000000000}`, "event", "event"}, printed(2*time.Hour))
	require.Equal(t, []string{"event", "event"}, printed(2*time.Hour))
	require.Equal(t, []string{"event", "event"}, printed(3*time.Hour, 2*time.Hour), "ksnoop did not run for a while")
	require.Equal(t, []string{`clock,"realtime":3600000000000}`, "event", "event"}, printed(time.Hour))
}
