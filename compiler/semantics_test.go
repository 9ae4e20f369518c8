package compiler

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

var (
	rounds   = flag.Int("rounds", 15000, "calls of random functions with random specs")
	onlySeed = flag.Uint64("seed", 0, "the one seed to try")
)

// FuzzSemantics: what generated code records of calls is what the syntax tree
// means, on every back end.
func FuzzSemantics(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { semantics(t, seed, &tally{}) })
}

// TestSemantics tries so many rounds, on all CPUs: a round is a call of a spec
// on a back end.
func TestSemantics(t *testing.T) {
	if *onlySeed != 0 {
		semantics(t, *onlySeed, &tally{})
		return
	}
	var total tally
	shards := runtime.GOMAXPROCS(0)
	t.Run("shards", func(t *testing.T) {
		for i := range shards {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				var own tally
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
}

// tally says what was tried.
type tally struct {
	mu                                               sync.Mutex
	rounds, specs, refused, events, unreadable, open int
}

func (a *tally) add(b *tally) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rounds += b.rounds
	a.specs += b.specs
	a.refused += b.refused
	a.events += b.events
	a.unreadable += b.unreadable
	a.open += b.open
}

func (a *tally) String() string {
	return fmt.Sprintf("%d rounds with %d specs, %d of them refused: %d events, %d unreadable, %d specs left open",
		a.rounds, a.specs, a.refused, a.events, a.unreadable, a.open)
}

// semantics tries specs on a random kernel.
func semantics(t testing.TB, seed uint64, sum *tally) {
	k, err := newKernel(rand.New(rand.NewPCG(seed, 1)))
	require.NoError(t, err, "seed %d", seed)
	for _, fn := range k.funcs {
		for range 3 {
			sum.specs++
			newExperiment(t, k, fn).try(t, seed, sum)
		}
	}
}

// try makes the calls on each back end.
func (x *experiment) try(t testing.TB, seed uint64, sum *tally) {
	for _, end := range semanticBackEnds {
		if end.arch == ARM64 && !x.fn.inWords() {
			continue // it passes addresses, which specs say in another way
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
		if tr.ref.open {
			sum.open++
		}
	}
}

// backEnd is what a spec is compiled for.
type backEnd struct {
	arch     *Arch
	features Features
}

// semanticBackEnds are those that must agree.
var semanticBackEnds = []backEnd{
	{AMD64, withTrampoline}, {AMD64, withProbes}, {AMD64, withMulti}, {AMD64, withSession}, {AMD64, withBothSides}, {ARM64, withProbes},
}

// experiment is a spec and calls to try it with, the same on each back end.
type experiment struct {
	k       *kernel
	fn      *cFunction
	trace   *spec.Trace
	with    *spec.Trace // compiled along, and not looked at; nil: none
	options Options
	calls   []plannedCall
	memory  []byte // as it is before the calls
	seed    uint64 // of what happens during the calls
	measure Measure
}

func newExperiment(t testing.TB, k *kernel, fn *cFunction) *experiment {
	x := &experiment{k: k, fn: fn}
	k.mem.fixed = false
	for range 4 {
		x.calls = append(x.calls, plannedCall{fn.arguments(k), fn.returned(k)})
	}
	text := x.write()
	var err error
	x.trace, err = spec.Parse(text)
	require.NoError(t, err, "%s", text)
	k.mem.fixed = true
	x.memory = slices.Clone(k.mem.bytes[:k.mem.used])
	x.options = Options{RingBytes: 1 << 20, MaxBytes: pick(k.rnd, []int{8, 24, 200, DefaultMaxBytes}), Tally: k.rnd.IntN(2) == 0}
	x.seed = k.rnd.Uint64()
	if k.rnd.IntN(3) == 0 {
		x.with = pick(k.rnd, append(k.tried, x.trace))
	}
	k.tried = append(k.tried, x.trace)
	if k.rnd.IntN(2) == 0 {
		x.measure = Measure(1 + k.rnd.IntN(4))
	}
	return x
}

// write is a spec with constants that are near what the first call has.
func (x *experiment) write() string {
	call := &referenceCall{args: x.calls[0].args, result: x.calls[0].result, start: 998}
	call.now = moment{7<<32 | 8, 3, 1000, "worker", 1000}
	w := &writer{x.k, &reference{k: x.k, fn: x.fn, max: DefaultMaxBytes, call: call}}
	return w.spec()
}

// on makes a trial of it.
func (x *experiment) on(t testing.TB, unit *Unit, arch *Arch) *trial {
	copy(x.k.mem.bytes, x.memory)
	tr := &trial{
		rig: withMachine(t, unit, arch), rnd: rand.New(rand.NewPCG(x.seed, 1)), calls: x.calls, tally: x.options.Tally,
		ref: &reference{k: x.k, fn: x.fn, trace: x.trace, max: x.options.MaxBytes, measure: x.measure},
	}
	tr.put(heapStart, x.k.mem.bytes)
	tr.put(userStart, x.k.mem.user)
	return tr
}

func (x *experiment) resolve(target *Target) (*Probe, error) {
	plan, err := ResolveAll([]*spec.Trace{x.trace}, target, Wishes{Measures: map[*spec.Trace]Measure{x.trace: x.measure}})
	if err != nil {
		return nil, err
	}
	return plan.Probes[0], nil
}

// compile is nil for a spec that is refused.
func (x *experiment) compile(t testing.TB, end backEnd, sum *tally) *Unit {
	target := &Target{Kernel: x.k.btf, Symbols: x.k.symbols, Arch: end.arch, Features: end.features}
	p, err := x.resolve(target)
	if err != nil {
		var refused *spec.Error
		require.ErrorAs(t, err, &refused)
		sum.refused++
		return nil
	}
	options := x.options
	options.Arch, options.Features = end.arch, end.features
	probes := []*Probe{p}
	if x.with != nil {
		if other, err := Resolve(x.with, target); err == nil {
			probes = []*Probe{other, p}
			options.Tally = options.Tally || x.measure != NoMeasure
		}
	}
	unit, err := Compile(probes, options)
	require.NoError(t, err, "%s", x.trace.Text)
	for name, ps := range unit.Collection.Programs {
		requireReachable(t, name, ps.Instructions)
	}
	return unit
}
