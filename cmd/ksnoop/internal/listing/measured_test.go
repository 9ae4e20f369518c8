package listing

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/fixture"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/codegen"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files")

// TestDescribeMeasuredGolden covers the output for a measured probe: every step has
// its comment, and there is no record.
func TestDescribeMeasuredGolden(t *testing.T) {
	const golden = "testdata/measured.txt"
	types, err := btf.LoadSpecFromReader(bytes.NewReader(fixture.Types(t)))
	require.NoError(t, err)
	features := target.FeaturesOf("6.1", types, compiler.AMD64)
	target := &compiler.Target{Kernel: types, Module: target.NoModule, Arch: compiler.AMD64, Features: features}
	trace, err := spec.Parse("vfs_open(return) if file->flags == 1")
	require.NoError(t, err)
	wishes := resolve.Wishes{Measures: map[*spec.Trace]compiler.Measure{trace: compiler.Values}}
	plan, err := resolve.All([]*spec.Trace{trace}, target, wishes)
	require.NoError(t, err)
	unit, err := codegen.Compile(plan.Probes, compiler.Options{RingBytes: 4096})
	require.NoError(t, err)
	var text bytes.Buffer
	Describe(&text, unit)
	if *update {
		require.NoError(t, os.WriteFile(golden, text.Bytes(), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), text.String())
}
