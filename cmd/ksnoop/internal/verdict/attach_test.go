package verdict

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/fixture"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/codegen"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/suite"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/stretchr/testify/require"
)

// TestRefusedAssertions verifies that an assertion has no verdict, and a metric no number,
// if the verifier refuses one of its programs, at any level of a chain, and that others
// have one.
func TestRefusedAssertions(t *testing.T) {
	s, err := suite.Parse("x.probes", `ksnoop-probes 1
suite x
assert good  vfs_open()              never
assert bad   vfs_read(count > 5)     never
assert both  vfs_open() ~ vfs_read() difference <= 1
assert stack -s vfs_read vfs_open    never
metric calls vfs_read()              count
metric other vfs_open()              count
`)
	require.NoError(t, err)
	types, err := btf.LoadSpecFromReader(bytes.NewReader(fixture.Types(t)))
	require.NoError(t, err)
	features := target.FeaturesOf("6.12", types, compiler.AMD64)
	var stderr strings.Builder
	tr := &tester{suite: s, counted: everything(s), bind: resolve.All, options: new(Options), streams: &term.Streams{Err: &stderr}}
	tr.target = &compiler.Target{Kernel: types, Module: target.NoModule, Arch: compiler.AMD64, Features: features}
	fit, err := tr.resolve()
	require.NoError(t, err)
	require.True(t, fit)
	for _, u := range tr.units {
		u.unit, err = codegen.Compile(u.plan.Probes, compiler.Options{RingBytes: 4096})
		require.NoError(t, err)
		refusals := []*runtime.VerifierError{refusalOf(u.plan.Probes)}
		if !u.chain {
			refusals = []*runtime.VerifierError{refusalOf(u.plan.Probes[1:2]), refusalOf(u.plan.Probes[4:5])} // those of bad and calls
		}
		require.NoError(t, tr.refuse(u, refusals))
	}
	tr.units = nil
	results, err := tr.judge()
	require.NoError(t, err)
	refused := map[string]bool{}
	for _, r := range results {
		refused[r.Name] = strings.Contains(r.Text, "the kernel's verifier refused the program, which is a bug of ksnoop")
		if refused[r.Name] {
			require.Equal(t, suite.Error, r.Status)
		}
	}
	require.Equal(t, map[string]bool{"good": false, "bad": true, "both": false, "stack": true, "calls": true, "other": false}, refused)
	var judged []string
	for _, r := range judgedOf(results) {
		judged = append(judged, r.Name)
	}
	require.Equal(t, []string{"good", "bad", "both", "stack", "calls"}, judged, "a metric without a number counts, too")
	require.Contains(t, stderr.String(), "; not traced: vfs_read(count > 5)\n")
	require.Contains(t, stderr.String(), "; not traced: vfs_read, vfs_open\n")
}

// refusalOf returns the verifier's error for a program of probes.
func refusalOf(probes []*compiler.Probe) *runtime.VerifierError {
	log := &ebpf.VerifierError{Cause: errors.New("permission denied"), Log: []string{"0: (bf) r1 = r9", "R9 !read_ok"}}
	return &runtime.VerifierError{Program: "the program", Err: log, Probes: probes}
}
