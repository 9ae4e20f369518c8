package resolve

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

func mustResolve(t testing.TB, target *compiler.Target, text string) *compiler.Probe {
	trace, err := spec.Parse(text)
	require.NoError(t, err)
	p, err := One(trace, target)
	require.NoError(t, err)
	return p
}
