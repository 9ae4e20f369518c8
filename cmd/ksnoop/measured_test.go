package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// What describe says of a probe that is measured: every step has its sentence,
// and there is no record.
func TestDescribeMeasuredGolden(t *testing.T) {
	const golden = "testdata/measured.txt"
	types, err := btf.LoadSpecFromReader(bytes.NewReader(kernelTypes(t)))
	require.NoError(t, err)
	features, err := featuresOf("6.1", types, compiler.AMD64)
	require.NoError(t, err)
	target := &compiler.Target{Kernel: types, Module: noModule, Arch: compiler.AMD64, Features: features}
	trace, err := spec.Parse("vfs_open(return) if file->flags == 1")
	require.NoError(t, err)
	wishes := compiler.Wishes{Measures: map[*spec.Trace]compiler.Measure{trace: compiler.Values}}
	plan, err := compiler.ResolveAll([]*spec.Trace{trace}, target, wishes)
	require.NoError(t, err)
	unit, err := compiler.Compile(plan.Probes, compiler.Options{Arch: target.Arch, Features: features, RingBytes: 4096})
	require.NoError(t, err)
	var text bytes.Buffer
	describe(&text, unit)
	if *update {
		require.NoError(t, os.WriteFile(golden, text.Bytes(), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), text.String())
}
