package run

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

func TestParseTime(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"10s": 10 * time.Second, "500ms": 500 * time.Millisecond, "2m30s": 150 * time.Second,
		"10": 10 * time.Second, "0.5": 500 * time.Millisecond, "1e-1": 0, "-1": 0, "0": 0, "": 0, "soon": 0, "0x10": 0, "NaN": 0,
	} {
		got, err := ParseTime("for", text)
		require.Equal(t, want, got, text)
		require.Equal(t, want == 0, err != nil, text)
	}
}

// endless is a source that always has another event.
type endless struct{ read int }

func (e *endless) Read(*runtime.Event) error { e.read++; return nil }

func (e *endless) Idle() bool { return false }

func TestLimited(t *testing.T) {
	from := &endless{}
	l := &limited{from, 3}
	n := 0
	for ; !errors.Is(l.Read(nil), io.EOF); n++ {
		require.Equal(t, n == 2, l.Idle(), "what there is can be shown after the last one")
	}
	require.Equal(t, 3, n)
	require.Equal(t, 3, from.read)
}

// lives is a source of the ends of objects, each with the objects that are followed when
// it is read.
type lives struct {
	begun   int
	live    []uint64
	ends    []uint64
	follow  compiler.Follow
	stopped bool
}

func (l *lives) Objects() (int, []uint64, error) { return l.begun, l.live, nil }

func (l *lives) Stop() error { l.stopped = true; return nil }

func (l *lives) Idle() bool { return false }

func (l *lives) Read(ev *runtime.Event) error {
	if l.stopped {
		return io.EOF
	}
	ev.EventType = &compiler.EventType{Probe: &compiler.Probe{Follow: &l.follow}}
	ev.Object.Number, l.ends = l.ends[0], l.ends[1:]
	return nil
}

// TestUntilEnded verifies that the end of the last object ends a trace, whether or not the
// program of that end has forgotten the object when its record is read.
func TestUntilEnded(t *testing.T) {
	from := &lives{begun: 3, live: []uint64{1, 2}, ends: []uint64{1, 1, 3, 2}, follow: compiler.Follow{Role: compiler.Ends}}
	u := &untilEnded{objectSource: from, objects: 2}
	require.False(t, allEnded(from))
	for i := range 4 {
		require.NoError(t, u.Read(new(runtime.Event)), i)
		require.LessOrEqual(t, len(u.ended), 3)
	}
	require.ErrorIs(t, u.Read(new(runtime.Event)), io.EOF)
	require.True(t, from.stopped)

	from = &lives{begun: 2, ends: []uint64{3}}
	require.ErrorIs(t, (&untilEnded{objectSource: from, objects: 2}).Read(new(runtime.Event)), io.EOF, "the record of the last end was lost")
	require.True(t, allEnded(from))
	from = &lives{begun: 1, ends: []uint64{1}}
	require.NoError(t, (&untilEnded{objectSource: from, objects: 2}).Read(new(runtime.Event)))
	require.False(t, allEnded(&lives{}))
}
