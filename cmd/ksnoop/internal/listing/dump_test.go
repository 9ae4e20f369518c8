package listing

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUnshown(t *testing.T) {
	require.Equal(t, "the input is cut: only its first 64 MB are read", unshown(maxInput, maxInput, true))
}
