package codegen

import (
	"bytes"
	"encoding/binary"
	"os"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// TestMain lets more garbage wait: the interpreter makes a stack and maps for each call, which
// is nearly all that there is, and collecting it took half of the tests' time.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(800)
	}
	m.Run()
}

func mustResolve(t testing.TB, target *compiler.Target, text string) *compiler.Probe {
	trace, err := spec.Parse(text)
	require.NoError(t, err)
	p, err := resolve.One(trace, target)
	require.NoError(t, err)
	return p
}

func le(values ...any) []byte {
	var b bytes.Buffer
	for _, v := range values {
		_ = binary.Write(&b, binary.LittleEndian, v) // never fails on a buffer
	}
	return b.Bytes()
}
