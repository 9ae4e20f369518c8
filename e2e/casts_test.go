//go:build linux

package e2e

import (
	"cmp"
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/codegen"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
	"github.com/stretchr/testify/require"
)

var (
	casts     = flag.Int("casts", 0, "how many random specs with casts each kernel verifies, in every attach kind; 0: 40, or 2000 with -full")
	castsSeed = flag.Uint64("casts-seed", 1, "what they are made of")
)

// A castSpec is a spec with the measure for its calls.
type castSpec struct {
	trace   *spec.Trace
	measure compiler.Measure
}

func (s castSpec) wishes(attach compiler.Kind) resolve.Wishes {
	return resolve.Wishes{Attach: attach, Measures: map[*spec.Trace]compiler.Measure{s.trace: s.measure}}
}

// testCasts checks that the verifier accepts every valid spec, whatever its
// values are cast to, in every attach kind.
func testCasts(t *testing.T, k *kernel) {
	target := k.target()
	target.Features.Preemptible = false // otherwise fentry would not be chosen for all
	specs := k.castSpecs(t, target, cmp.Or(*casts, rounds(20, 2000)))
	t.Logf("%d specs, with aggregates, spans, paths, computed values and user stacks: %v", len(specs), countCasts(specs))
	for _, attach := range append(k.twoKinds(t), "") {
		name := string(attach)
		if attach == "" {
			name = "any"
		}
		t.Run(name, func(t *testing.T) { k.loadCasts(t, target, attach, specs) })
	}
}

// castSpecs returns n specs that can be traced, and of each sort that countCasts counts and
// these have not, another one.
func (k *kernel) castSpecs(t *testing.T, target *compiler.Target, n int) (specs []castSpec) {
	c := &caster{rnd: rand.New(rand.NewPCG(*castsSeed, 1)), target: target, functions: k.functions(t)}
	for typ, err := range k.Types().All() {
		require.NoError(t, err)
		if td, ok := typ.(*btf.Typedef); ok && strings.HasPrefix(td.Name, "btf_trace_") {
			c.tracepoints = append(c.tracepoints, strings.TrimPrefix(td.Name, "btf_trace_"))
		}
	}
	slices.Sort(c.tracepoints)
	for written := 1; len(specs) < n || absent(specs) > 0; written++ {
		text, measure := c.spec()
		if trace, err := kprobe.ParseAny(text); err == nil {
			s := castSpec{trace, measure}
			_, err := resolve.All([]*spec.Trace{trace}, target, s.wishes(""))
			if more := append(specs, s); err == nil && (len(specs) < n || absent(more) < absent(specs)) {
				specs = more
			}
		}
		require.Less(t, written, 1000*(len(specs)+10), "hardly any of the specs has a meaning: %s", text)
	}
	return specs
}

// absent returns how many sorts there are none of.
func absent(specs []castSpec) (n int) {
	for _, count := range countCasts(specs) {
		if count == 0 {
			n++
		}
	}
	return n
}

// countCasts counts the specs with aggregates, the spans, those with paths, with computed
// values and with stacks of processes.
func countCasts(specs []castSpec) []int {
	tables, spans, paths, computed, stacks := 0, 0, 0, 0, 0
	for _, s := range specs {
		if len(s.trace.Aggregates()) > 0 {
			tables++
		}
		if s.trace.Ending != nil {
			spans++
		}
		if strings.Contains(s.trace.Text, ":path") {
			paths++
		}
		if strings.Contains(s.trace.Text, " + ") || strings.Contains(s.trace.Text, "<<") {
			computed++
		}
		if strings.Contains(s.trace.Text, "$ustack") {
			stacks++
		}
	}
	return []int{tables, spans, paths, computed, stacks}
}

// loadCasts loads the specs that an attach kind can trace. An empty kind stands
// for the specs that use a kind that a user cannot choose.
func (k *kernel) loadCasts(t *testing.T, target *compiler.Target, attach compiler.Kind, specs []castSpec) {
	n, kinds := 0, map[compiler.Kind]int{}
	for some := range slices.Chunk(specs, 20) {
		var probes []*compiler.Probe
		for _, s := range some {
			plan, err := resolve.All([]*spec.Trace{s.trace}, target, s.wishes(attach))
			if err != nil || attach == "" && plan.Probes[0].Attach.Entry != compiler.TpBTF || attach != "" && plan.Probes[0].Attach.Entry != attach {
				continue
			}
			probes = append(probes, plan.Probes...)
		}
		if len(probes) == 0 {
			continue
		}
		n += len(probes)
		for _, p := range probes {
			kinds[p.Attach.Entry]++
		}
		if err := k.loadSmall(probes...); err != nil {
			t.Errorf("%d specs together: %v", len(probes), err)
			for _, p := range probes {
				if err := k.loadSmall(p); err != nil {
					t.Errorf("%s, measured as %v: %v", p.Trace.Text, p.Measure, refusal(err))
				}
			}
		}
	}
	t.Logf("%d specs: %v", n, kinds)
	least := len(specs) / 2 // nearly all, but for tracepoints
	if attach == "" {
		least = max(1, len(specs)/30)
	}
	require.GreaterOrEqual(t, n, least)
}

// loadSmall loads probes with small maps, so that the verifier checks them.
func (k *kernel) loadSmall(probes ...*compiler.Probe) error {
	unit, err := codegen.Compile(probes, compiler.Options{
		Self: 1, RingBytes: 1 << 16, MaxBytes: 64, CountCalls: true, Keys: 16,
	})
	if err != nil {
		return err
	}
	return k.verify(unit)
}
