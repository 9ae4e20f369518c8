package compiler

import (
	"slices"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// Probe is a spec bound to a kernel: the function, the values to record and
// every decision about how.
type Probe struct {
	Trace *spec.Trace
	// Asked is the trace as it was given: Trace has the name of a function in
	// place of a glob, and an address, or $arg*, spelt out.
	Asked  *spec.Trace
	Func   *Function
	Attach Attach
	Entry  []*Value // recorded as they are at entry, in the order of the spec
	Return []*Value // recorded at return
	// EntryTests and ReturnTests are what must hold for an event, by when it
	// can be known.
	EntryTests, ReturnTests []Test
	// Flags are the parts of return tests that are tested at entry.
	Flags []*Flag
	// Paired: one event at return carries both sides, because a predicate
	// joins them.
	Paired bool
	// Timed: the time at entry is wanted at return.
	Timed bool
	// Stash: something must be kept from entry until return. A paired fexit
	// program needs nothing kept if it finds it all in its own arguments.
	Stash bool
	// OnEntry and OnReturn are the sides that make an event of their own.
	OnEntry, OnReturn bool
	// Offset is how far behind the beginning of the function the probe is.
	Offset uint64
	// Registers: only kprobes have what is wanted.
	Registers bool
	// Caller: where the function returns to is wanted.
	Caller bool
	// OfGlob: the function is one of those that a glob means.
	OfGlob bool
	// Chain is the place of the probe in a stack; nil: it stands alone.
	Chain  *Chain
	Stacks *Stacks // of the kernel
	Comm   int     // offset in struct task_struct of the thread's name; 0: it cannot be loaded
	// Measure is what is kept of calls in place of records.
	Measure Measure
	// Measured is the value that is measured: of [Values] the number, of
	// [Changes] what is compared.
	Measured *Value
	// First is what is kept of the first call, a number; nil: its time alone.
	First *Value
}

// Resolve binds one spec to a target and decides how to trace it. An error
// that the spec is to blame for is a [*spec.Error].
func Resolve(trace *spec.Trace, target *Target) (*Probe, error) {
	plan, err := ResolveAll([]*spec.Trace{trace}, target, Wishes{})
	if err != nil {
		return nil, err
	}
	return plan.Probes[0], nil
}

// builder builds a probe of a spec.
type builder struct {
	binder
	probe  *Probe
	values map[string]*Value // by expression and format
	// fetched are the values of a kprobe_events line.
	fetched map[*spec.Item]*Value
}

// bindProbe binds names to types; how to attach is left open.
func bindProbe(trace *spec.Trace, target *Target, w Wishes, m Measure) (*Probe, error) {
	if trace.Probe != nil {
		return bindEvent(trace, target, w, m)
	}
	fn, err := FindFunction(trace, target)
	if err != nil {
		return nil, err
	}
	p := &Probe{Trace: trace, Func: fn}
	b := &builder{binder: binder{trace: trace, target: target, fn: fn}, probe: p, values: map[string]*Value{}}
	items := trace.Items
	if items == nil && m == NoMeasure {
		items = b.everything()
	}
	var all, plain []*Value
	var tests AllOf
	for _, item := range items {
		value, err := b.shared(item)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(all, value) {
			all = append(all, value)
		}
		if item.Pred == nil {
			plain = append(plain, value)
			continue
		}
		test, err := b.leaf(item, false)
		if err != nil {
			return nil, err
		}
		tests = append(tests, test)
	}
	if trace.Cond != nil {
		test, err := b.test(trace.Cond, false)
		if err != nil {
			return nil, err
		}
		tests = append(tests, flatAll(test)...)
	}
	p.settle(all, tests)
	return p, p.measure(m, all, plain)
}

// everything is every argument, and the return value if there is one.
func (b *builder) everything() []*spec.Item {
	var items []*spec.Item
	at := b.trace.Func.At
	for _, param := range b.fn.Params {
		items = append(items, &spec.Item{Value: &spec.Arg{Name: spec.Ident{Name: param.Name, At: at}}})
	}
	if b.fn.Result != nil && !neverReturns[b.fn.Name] && !b.fn.resultLost() {
		items = append(items, &spec.Item{Value: &spec.Return{At: at}})
	}
	return items
}

// shared binds an item's value, once for all the places that name it.
func (b *builder) shared(item *spec.Item) (*Value, error) {
	if b.fetched != nil {
		return b.sharedFetch(item)
	}
	key := item.Value.String() + ":" + item.Format.Name
	if v := b.values[key]; v != nil {
		return v, nil
	}
	v, err := b.value(item.Value, item.Format)
	if err == nil {
		b.values[key] = v
	}
	return v, err
}
