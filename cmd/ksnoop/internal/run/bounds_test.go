package run

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
