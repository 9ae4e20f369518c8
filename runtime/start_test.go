package runtime

import (
	"cmp"
	"os"

	"github.com/ksnoop/ksnoop/compiler/codegen"
	"github.com/ksnoop/ksnoop/compiler/resolve"

	goruntime "runtime"
	"strings"
	"testing"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
	"github.com/stretchr/testify/require"
)

const usualSpec = "vfs_read(file->f_path.dentry->d_name.name, count > 100, return)"

// opened returns the running kernel as a trace of a spec opens it.
func opened(tb testing.TB, trace *spec.Trace) *Kernel {
	needs, ok := resolve.FewNeeds([]*spec.Trace{trace})
	require.True(tb, ok)
	k, err := OpenPart(needs)
	require.NoError(tb, err)
	return k
}

func requireTypes(tb testing.TB) {
	if _, err := os.Stat(typesFile); err != nil {
		tb.Skip(err)
	}
}

// newTarget describes a kernel as to a user who may not ask it anything.
func newTarget(tb testing.TB, k *Kernel) *compiler.Target {
	symbols, err := kallsyms.Read(strings.NewReader("ffffffff81000000 T vfs_read\n"), nil)
	require.NoError(tb, err)
	v, _, err := release()
	require.NoError(tb, err)
	return &compiler.Target{Kernel: k.types, Symbols: symbols, Features: promised(v, k.types), Arch: compiler.AMD64}
}

func resolved(tb testing.TB, trace *spec.Trace, target *compiler.Target) *compiler.Probe {
	p, err := resolve.One(trace, target)
	require.NoError(tb, err)
	return p
}

func compiled(tb testing.TB, p *compiler.Probe, target *compiler.Target) *compiler.Unit {
	unit, err := codegen.Compile([]*compiler.Probe{p}, compiler.Options{RingBytes: 1 << 20})
	require.NoError(tb, err)
	return unit
}

// loaded loads the programs of traces, and returns their probes, too.
func loaded(t *testing.T, traces ...*spec.Trace) (*Session, []*compiler.Probe) {
	var plan *compiler.Plan
	var misfit error
	k, err := OpenFor(traces, nil, func(target *compiler.Target) bool {
		plan, misfit = resolve.All(traces, target, resolve.Wishes{})
		return misfit == nil
	})
	require.NoError(t, cmp.Or(err, misfit))
	unit, err := codegen.Compile(plan.Probes, compiler.Options{})
	require.NoError(t, err)
	s, err := Load(unit, k)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s, plan.Probes
}

// TestStartAllocates verifies that types, resolving and compiling allocate little.
func TestStartAllocates(t *testing.T) {
	requireTypes(t)
	trace, err := spec.Parse(usualSpec)
	require.NoError(t, err)
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	target := newTarget(t, opened(t, trace))
	compiled(t, resolved(t, trace, target), target)
	goruntime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20))
}

// BenchmarkStart measures the steps of a start, and all of them except those that ask
// the kernel.
func BenchmarkStart(b *testing.B) {
	requireTypes(b)
	trace, err := spec.Parse(usualSpec)
	require.NoError(b, err)
	target := newTarget(b, opened(b, trace))
	probe := resolved(b, trace, target)
	for _, step := range []struct {
		name string
		take func()
	}{
		{"part of BTF", func() { opened(b, trace) }},
		{"whole BTF", func() {
			_, err := OpenKernel()
			require.NoError(b, err)
		}},
		{"kallsyms", func() {
			_, err := readSymbolFile(kallsyms.Wanted{Keep: func(name string) bool { return name == "vfs_read" }})
			require.NoError(b, err)
		}},
		{"resolve", func() { resolved(b, trace, target) }},
		{"compile", func() { compiled(b, probe, target) }},
		{"BTF, resolve and compile", func() {
			target := newTarget(b, opened(b, trace))
			compiled(b, resolved(b, trace, target), target)
		}},
	} {
		b.Run(step.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				step.take()
			}
		})
	}
}
