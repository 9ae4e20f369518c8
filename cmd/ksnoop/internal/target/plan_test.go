package target

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLeftOut(t *testing.T) {
	require.Empty(t, leftOut(nil))
	require.Equal(t, "3 left out: a", leftOut(map[string]int{"a": 3}))
	require.Equal(t, "15 left out (5: e; 4: d; 3: b; 1: a; 2 for other reasons)",
		leftOut(map[string]int{"a": 1, "b": 3, "c": 1, "d": 4, "e": 5, "f": 1}))
}
