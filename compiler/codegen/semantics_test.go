package codegen

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

var (
	rounds   = flag.Int("rounds", 6000, "calls of random functions with random specs")
	onlySeed = flag.Uint64("seed", 0, "the one seed to try")
)

// FuzzSemantics checks on every back end that generated code records what the
// syntax tree means.
func FuzzSemantics(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { semantics(t, seed, &tried{}) })
}

// TestSemantics runs a number of rounds on all CPUs. A round is a call of a
// spec on a back end.
func TestSemantics(t *testing.T) {
	if *onlySeed != 0 {
		semantics(t, *onlySeed, &tried{})
		return
	}
	var total tried
	shards := runtime.GOMAXPROCS(0)
	t.Run("shards", func(t *testing.T) {
		for i := range shards {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				var own tried
				for seed := uint64(i + 1); own.rounds < *rounds/shards && !t.Failed(); seed += uint64(shards) {
					semantics(t, seed, &own)
				}
				total.add(&own)
			})
		}
	})
	if t.Failed() {
		return
	}
	t.Log(&total)
	require.Greater(t, total.specs, 2*total.refused, "most specs have a meaning")
	require.Greater(t, 5*total.events, total.rounds, "many calls match")
	require.Greater(t, 100*total.rows, total.rounds, "many objects of iterators match")
	require.Greater(t, 3000*min(total.paths, total.stacks), total.rounds, "many paths and stacks are shown")
}

// tried counts what was tried.
type tried struct {
	mu                                               sync.Mutex
	rounds, specs, refused, events, unreadable, open int
	rows, paths, stacks                              int // of the events
}

func (a *tried) add(b *tried) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rounds += b.rounds
	a.specs += b.specs
	a.refused += b.refused
	a.events += b.events
	a.unreadable += b.unreadable
	a.open += b.open
	a.rows += b.rows
	a.paths += b.paths
	a.stacks += b.stacks
}

// count counts what the expected events show.
func (a *tried) count(tr *trial) {
	for _, e := range tr.want {
		if tr.ref.fn.iterator {
			a.rows++
		}
		for _, it := range e.items {
			if it.path != "" {
				a.paths++
			}
			if it.stack {
				a.stacks++
			}
		}
	}
}

func (a *tried) String() string {
	return fmt.Sprintf("%d rounds with %d specs, %d of them refused: %d events with %d rows, %d paths and %d stacks, %d unreadable, %d specs left open",
		a.rounds, a.specs, a.refused, a.events, a.rows, a.paths, a.stacks, a.unreadable, a.open)
}

// semantics tests specs on a random kernel.
func semantics(t testing.TB, seed uint64, sum *tried) {
	k, err := newKernel(rand.New(rand.NewPCG(seed, 1)))
	require.NoError(t, err, "seed %d", seed)
	for _, fn := range slices.Concat(k.funcs, k.iters) {
		for range 3 {
			sum.specs++
			newExperiment(t, k, fn).try(t, seed, sum)
		}
	}
}

// try makes the calls on each back end.
func (x *experiment) try(t testing.TB, seed uint64, sum *tried) {
	for _, end := range semanticBackEnds {
		if end.arch == compiler.ARM64 && !x.fn.inWords() {
			continue // large structures are passed as addresses, and specs have to follow these
		}
		if x.fn.iterator && end.features.KprobeMulti {
			continue // its program is the same
		}
		unit := x.compile(t, end, sum)
		if unit == nil {
			return
		}
		tr := x.on(t, unit, end.arch)
		tr.requireAgreement(seed, tr.run())
		sum.rounds += len(x.calls)
		sum.events += len(tr.want) + int(tr.counted.matched)
		sum.unreadable += tr.most
		sum.count(tr)
		if tr.ref.open {
			sum.open++
		}
	}
}

// backEnd is an architecture and the features to compile for.
type backEnd struct {
	arch     *compiler.Arch
	features compiler.Features
}

// semanticBackEnds lists the back ends that must agree.
var semanticBackEnds = []backEnd{
	{compiler.AMD64, compilertest.WithTrampoline}, {compiler.AMD64, compilertest.WithoutFuncArg}, {compiler.AMD64, compilertest.WithProbes}, {compiler.AMD64, compilertest.WithMulti}, {compiler.AMD64, compilertest.WithKprobeSession}, {compiler.AMD64, compilertest.WithBothSides}, {compiler.ARM64, compilertest.WithProbes}, {compiler.ARM64, compilertest.WithKprobeSession},
}

// experiment is a spec and the calls to test it with, the same on each back
// end.
type experiment struct {
	k       *kernel
	fn      *cFunction
	trace   *spec.Trace
	with    *spec.Trace // compiled in the same unit, but not checked; nil if none
	options compiler.Options
	calls   []plannedCall
	memory  []byte // contents before the calls
	seed    uint64 // seed for what happens during the calls
	measure compiler.Measure
	// Of a spec with aggregates, plain has the key and the values as items.
	plain *spec.Trace
}

func newExperiment(t testing.TB, k *kernel, fn *cFunction) *experiment {
	x := &experiment{k: k, fn: fn}
	k.mem.fixed = false
	for range 4 {
		x.calls = append(x.calls, plannedCall{fn.arguments(k), fn.returned(k)})
	}
	text, plain := x.write()
	var err error
	x.trace, err = spec.Parse(text)
	require.NoError(t, err, "%s", text)
	x.plain, err = spec.Parse(plain)
	require.NoError(t, err, "%s", plain)
	k.mem.fixed = true
	x.memory = slices.Clone(k.mem.bytes[:k.mem.used])
	x.options = compiler.Options{RingBytes: 1 << 20, MaxBytes: pick(k.rnd, []int{8, 24, 200, compiler.DefaultMaxBytes}), CountCalls: k.rnd.IntN(2) == 0}
	x.seed = k.rnd.Uint64()
	if k.rnd.IntN(3) == 0 {
		x.with = pick(k.rnd, append(k.tried, x.trace))
	}
	if fn.iterator {
		x.with, x.options.MaxBytes = nil, min(x.options.MaxBytes, 2000) // a row has at most eight pages
	}
	switch {
	case len(x.trace.Aggregates()) > 0:
		x.measure, x.with = compiler.Tables, nil
		x.options.ClearTables = x.seed&1 > 0
		return x
	case fn.iterator:
		return x
	}
	k.tried = append(k.tried, x.trace)
	if k.rnd.IntN(2) == 0 {
		x.measure = compiler.Measure(1 + k.rnd.IntN(4))
	} else if x.seed%4 == 0 {
		x.options.Rate = uint32(1 + x.seed>>8%3)
	}
	return x
}

// write returns a spec with constants that are near the values of the first
// call.
func (x *experiment) write() (text, plain string) {
	w := x.writer()
	if x.k.rnd.IntN(5) == 0 {
		return w.table()
	}
	text = w.spec()
	return text, text
}

// writer returns a writer of specs that looks at the first call.
func (x *experiment) writer() *writer {
	call := &referenceCall{args: x.calls[0].args, result: x.calls[0].result, start: 998}
	call.now = moment{pidtid: 7<<32 | 8, cpu: 3, uid: 1000, comm: "worker", time: 1000}
	return &writer{kernel: x.k, ref: &reference{k: x.k, fn: x.fn, max: compiler.DefaultMaxBytes, call: call}}
}

// on returns a trial of the experiment.
func (x *experiment) on(t testing.TB, unit *generator, arch *compiler.Arch) *trial {
	copy(x.k.mem.bytes, x.memory)
	tr := &trial{
		rig: withMachine(t, unit, arch), rnd: rand.New(rand.NewPCG(x.seed, 1)), calls: x.calls, countsCalls: x.options.CountCalls,
		rate: int(x.options.Rate), asked: map[compiler.EventKind]map[uint64]int{}, limited: map[compiler.EventKind]uint64{},
		ref: &reference{k: x.k, fn: x.fn, trace: x.plain, max: x.options.MaxBytes, measure: x.measure, table: x.tableOf()},
	}
	if x.measure == compiler.Tables { // strings of keys have room in any case
		tr.ref.max = max(tr.ref.max, compiler.MostKeyPart)
	}
	if x.options.ClearTables {
		tr.takeTurns(x.seed >> 1 & 1)
	}
	tr.put(heapStart, x.k.mem.bytes)
	tr.put(userStart, x.k.mem.user)
	return tr
}

// tableOf returns what the reference needs to know of a spec with aggregates.
func (x *experiment) tableOf() (table tableOf) {
	table.aggregates = x.trace.Aggregates()
	table.key = len(x.trace.Items) - len(table.aggregates)
	return table
}

func (x *experiment) resolve(target *compiler.Target) (*compiler.Probe, error) {
	plan, err := resolve.All([]*spec.Trace{x.trace}, target, resolve.Wishes{Measures: map[*spec.Trace]compiler.Measure{x.trace: x.measure}})
	if err != nil {
		return nil, err
	}
	return plan.Probes[0], nil
}

// compile returns nil for a spec that is refused.
func (x *experiment) compile(t testing.TB, end backEnd, sum *tried) *generator {
	target := &compiler.Target{Kernel: x.k.btf, Symbols: x.k.symbols, Arch: end.arch, Features: end.features}
	p, err := x.resolve(target)
	if err != nil {
		var refused *spec.Error
		require.ErrorAs(t, err, &refused)
		sum.refused++
		return nil
	}
	options := x.options

	probes := []*compiler.Probe{p}
	if x.with != nil {
		if other, err := resolve.One(x.with, target); err == nil {
			probes = []*compiler.Probe{other, p}
			options.CountCalls = options.CountCalls || x.measure != compiler.NoMeasure
		}
	}
	unit, err := generate(probes, options)
	require.NoError(t, err, "%s", x.trace.Text)
	for name, ps := range unit.Collection.Programs {
		requireReachable(t, name, ps.Instructions)
	}
	return unit
}
