package codegen

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// TestSpanSemantics makes spans of random specs that are about the entry alone, which
// end at the return of the same call. What they show of the beginning, or count by it,
// must be what the syntax tree means at the entry.
func TestSpanSemantics(t *testing.T) {
	least, leastCounted := *rounds/8, *rounds/40
	for seed, events, tabled := uint64(1), 0, 0; events < least || tabled < leastCounted; seed++ {
		k, err := newKernel(rand.New(rand.NewPCG(seed, 2)))
		require.NoError(t, err)
		for _, fn := range k.funcs {
			x := newExperiment(t, k, fn)
			x.with, x.options.Rate = nil, 0
			if x.measure != compiler.Tables {
				x.measure = compiler.NoMeasure
			}
			for _, end := range semanticBackEnds {
				for _, end.features.CompareExchange = range []bool{true, false} {
					switch span := x.spanTo(t, end); {
					case span == nil:
					case x.measure == compiler.Tables:
						tabled += x.tabulateSpan(t, span, end, seed)
					default:
						events += x.trySpan(t, span, end, seed)
					}
				}
			}
		}
	}
}

// spanTo compiles a span from the entry of the experiment's function to its return,
// or returns nil if the spec is not about the entry alone.
func (x *experiment) spanTo(t *testing.T, end backEnd) *generator {
	target := &compiler.Target{Kernel: x.k.btf, Symbols: x.k.symbols, Arch: end.arch, Features: end.features}
	p, err := x.resolve(target)
	if err != nil || p.OnReturn || x.fn.result == nil || x.trace.Items == nil || end.arch == compiler.ARM64 && !x.fn.inWords() {
		return nil
	}
	if result := x.fn.result; x.measure == compiler.Tables && (!result.scalar() || result.kind == cPointer) {
		return nil
	}
	span := *x.trace
	span.Key = &spec.Builtin{Name: spec.Ident{Name: "tid"}}
	span.Ending = &spec.Trace{Text: x.trace.Text, Func: x.trace.Func, Module: x.trace.Module, Items: []*spec.Item{{Value: &spec.Return{}}}, Key: span.Key}
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

// pass makes the calls. The function note gets each when it has been entered, and as it
// will return.
func (tr *trial) pass(t *testing.T, seed uint64, note func(c *referenceCall)) {
	for _, plan := range tr.calls {
		c := &referenceCall{args: plan.args, result: plan.result, now: tr.moment()}
		events, err := tr.ref.enter(c)
		require.NoError(t, err)
		leave, _ := tr.enterPlanned(plan)
		note(c)
		tr.expect(events, 0)
		tr.ref.k.mem.mutate(tr.rnd)
		tr.moment()
		leave()
		require.NoError(t, tr.err, "seed %d: %s", seed, tr.ref.trace)
	}
}

// tabulateSpan makes the calls, and returns the number of those that were counted. The
// return is the last part of the key.
func (x *experiment) tabulateSpan(t *testing.T, unit *generator, end backEnd, seed uint64) int {
	tr := x.on(t, unit, end.arch)
	by := map[string]*counted{}
	tr.pass(t, seed, func(c *referenceCall) {
		result, err := tr.ref.eval(&spec.Return{})
		require.NoError(t, err)
		number := fmt.Sprint(int64(tr.ref.formatted(&spec.Item{Value: &spec.Return{}}, result).num))
		if by[number] == nil {
			by[number] = &counted{}
		}
		tr.counted = *by[number]
		require.NoError(t, tr.note(c, compiler.AtEntry))
		*by[number] = tr.counted
	})
	if tr.ref.open {
		return 0
	}
	sum := counted{rows: map[string]*tabled{}}
	for number, n := range by {
		sum.matched += n.matched
		sum.unread += n.unread
		for key, row := range n.rows {
			whole := number
			if tr.ref.table.key > 0 {
				whole = key + " " + number
			}
			sum.rows[whole] = row
		}
	}
	tr.counted = sum
	begin, ended := tr.counters(0), tr.counters(1)
	require.Equal(t, sum.matched, begin.Matched, "seed %d: %s", seed, x.trace)
	require.Equal(t, sum.matched, ended.Matched, "seed %d: %s", seed, x.trace)
	require.Zero(t, begin.Open)
	require.NoError(t, tr.checkTable(1), "seed %d: %s", seed, x.trace)
	return int(sum.matched - sum.unread)
}

// trySpan makes the calls, and returns the number of events.
func (x *experiment) trySpan(t *testing.T, unit *generator, end backEnd, seed uint64) int {
	tr := x.on(t, unit, end.arch)
	tr.pass(t, seed, func(*referenceCall) {})
	if tr.ref.open {
		return 0
	}
	own := tr.own()
	require.Len(t, own, len(tr.want), "seed %d: %s", seed, x.trace)
	order := binary.LittleEndian
	for i, rec := range own {
		ev, want := unit.Events[order.Uint32(rec)], tr.want[i]
		require.Equal(t, compiler.SpanEvent, ev.Kind)
		require.Equal(t, len(want.items), ev.Begun(), "seed %d: %s", seed, x.trace)
		begin := rec[ev.Layout.Begin:][:compiler.BeginSize]
		require.Equal(t, want.at.pidtid, order.Uint64(begin[compiler.BeginPIDTID:]))
		require.Equal(t, uint64(want.at.cpu), order.Uint64(begin[compiler.BeginCPU:]))
		require.Equal(t, want.at.time, order.Uint64(rec[ev.Layout.Start:]))
		comm, _, _ := strings.Cut(string(begin[compiler.BeginComm:]), "\x00")
		require.Equal(t, want.at.comm, comm)
		for j, w := range want.items {
			got := shownIn(rec, ev.Layout, j, w)
			require.True(t, got.equal(w), "seed %d: %s: %s is %+v, and not %+v", seed, x.trace, ev.Items[j].Name, got, w)
		}
	}
	require.Zero(t, tr.counters(0).Open)
	return len(own)
}
