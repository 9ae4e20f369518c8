package codegen

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// TestSpanSemantics makes spans of random specs that are about the entry alone, which
// end at the return of the same call, or of a later one if the condition of the end does
// not hold. What they show of both points, or count by them, must be what the syntax trees
// mean there.
func TestSpanSemantics(t *testing.T) {
	least, leastCounted := *rounds/8, *rounds/40
	var sum spanned
	for seed := uint64(1); sum.events < least || sum.tabled < leastCounted; seed++ {
		k, err := newKernel(rand.New(rand.NewPCG(seed, 2)))
		require.NoError(t, err)
		for _, fn := range k.funcs {
			x := newExperiment(t, k, fn)
			x.with, x.options.Rate = nil, 0
			if x.measure != compiler.Tables {
				x.measure = compiler.NoMeasure
			}
			ending := x.writeEnding(t)
			for _, end := range semanticBackEnds {
				for _, end.features.CompareExchange = range []bool{true, false} {
					if unit := x.spanTo(t, ending, end); unit != nil {
						tr := &spanTrial{trial: x.on(t, unit, end.arch), end: &reference{k: k, fn: fn, trace: ending, max: x.options.MaxBytes}}
						tr.try(t, seed, &sum)
					}
				}
			}
		}
	}
	t.Logf("%+v", sum)
	require.Greater(t, 100*min(sum.waited, sum.timed, sum.unreadable), sum.events, "many conditions of ends decide")
}

// spanned counts what was tried of spans.
type spanned struct {
	events, tabled int // spans that were shown, and that were counted
	waited         int // ends whose condition did not hold, so that the beginning waited
	timed          int // ends that were not shown for their duration
	unreadable     int // ends with a condition on a value that could not be read
}

// writeEnding returns the end of a span at the return of the function, or nil if it returns
// nothing: random items and conditions of what is known there. A table has the result
// alone in its key.
func (x *experiment) writeEnding(t *testing.T) *spec.Trace {
	if x.fn.result == nil {
		return nil
	}
	x.k.mem.fixed = false
	w := x.writer()
	w.ends = true
	w.ref.call.start = w.ref.call.now.time - uint64(x.k.rnd.IntN(5))
	items := []string{"return"}
	for range x.k.rnd.IntN(3) {
		if x.measure != compiler.Tables {
			items = append(items, w.item(x.k.rnd.IntN(3) == 0))
		}
	}
	text := fmt.Sprintf("%s(%s)%s", x.fn.name, strings.Join(items, ", "), w.condition())
	x.k.mem.fixed = true
	x.memory = slices.Clone(x.k.mem.bytes[:x.k.mem.used])
	trace, err := spec.Parse(text)
	require.NoError(t, err, "%s", text)
	return trace
}

// spanTo compiles a span from the entry of the experiment's function to its return, or
// returns nil if the spec is not about the entry alone, or is refused.
func (x *experiment) spanTo(t *testing.T, ending *spec.Trace, end backEnd) *generator {
	target := &compiler.Target{Kernel: x.k.btf, Symbols: x.k.symbols, Arch: end.arch, Features: end.features}
	p, err := x.resolve(target)
	if err != nil || p.OnReturn || ending == nil || x.trace.Items == nil || end.arch == compiler.ARM64 && !x.fn.inWords() {
		return nil
	}
	if result := x.fn.result; x.measure == compiler.Tables && (!result.scalar() || result.kind == cPointer) {
		return nil
	}
	span, last := *x.trace, *ending
	span.Key = &spec.Builtin{Name: spec.Ident{Name: "tid"}}
	last.Key, span.Ending = span.Key, &last
	plan, err := resolve.All([]*spec.Trace{&span}, target, resolve.Wishes{})
	if err != nil {
		return nil
	}
	unit, err := generate(plan.Probes, x.options)
	require.NoError(t, err)
	for name, ps := range unit.Collection.Programs {
		requireReachable(t, name, ps.Instructions)
	}
	return unit
}
