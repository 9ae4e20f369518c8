package target

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

func TestLeftOut(t *testing.T) {
	require.Empty(t, leftOut(nil))
	require.Equal(t, "3 left out: a", leftOut(map[string]int{"a": 3}))
	require.Equal(t, "15 left out (5: e; 4: d; 3: b; 1: a; 2 for other reasons)",
		leftOut(map[string]int{"a": 1, "b": 3, "c": 1, "d": 4, "e": 5, "f": 1}))
}

func TestAreFunctions(t *testing.T) {
	require.Equal(t, "2 functions are", AreFunctions(2, &spec.Trace{}))
	require.Equal(t, "1 tracepoint is", AreFunctions(1, &spec.Trace{Tracepoint: true}))
	require.Equal(t, "15 iterators are", AreFunctions(15, &spec.Trace{Iterator: true}))
}
