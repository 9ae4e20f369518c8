// Package resolve binds the names of specs to a kernel: to its types, symbols
// and features. All policy is here: where an argument is, how a value is
// reached, which condition is evaluated when, how a function is attached. Each
// decision is a field of [compiler.Probe], so that code generation decides
// nothing.
package resolve

import (
	"slices"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// One binds one spec to a target and decides how to trace it. If the spec is to
// blame for an error, it is a [*spec.Error].
func One(trace *spec.Trace, target *compiler.Target) (*compiler.Probe, error) {
	plan, err := All([]*spec.Trace{trace}, target, Wishes{})
	if err != nil {
		return nil, err
	}
	return plan.Probes[0], nil
}

// Fits returns nil if the names in a spec are those of its function, whether or
// not that can be traced. Otherwise it returns the error that [One] returns.
func Fits(trace *spec.Trace, target *compiler.Target) error {
	if err := notInSpan(trace); err != nil {
		return err
	}
	if trace.Ending != nil {
		_, err := bindSpan(trace, target, compiler.NoMeasure)
		return err
	}
	_, err := bindProbe(trace, target, Wishes{}, compiler.NoMeasure)
	return err
}

// builder builds the probe of a spec.
type builder struct {
	binder
	probe *compiler.Probe
	// fetched are the values of a kprobe_events line.
	fetched map[*spec.Item]*compiler.Value
	// inKey are the values that have a part of the key, which may be the address of one.
	inKey []*compiler.Value
}

// newBuilder returns a builder of a probe whose trace and function are set.
func newBuilder(p *compiler.Probe, target *compiler.Target) *builder {
	return &builder{binder: binder{trace: p.Trace, target: target, fn: p.Func, values: map[string]*compiler.Value{}, modules: &p.Modules}, probe: p}
}

// bindProbe binds names to types. It does not decide how to attach.
func bindProbe(trace *spec.Trace, target *compiler.Target, w Wishes, m compiler.Measure) (*compiler.Probe, error) {
	if trace.Line != nil {
		return bindEvent(trace, target, w, m)
	}
	fn, err := FindFunction(trace, target)
	if err != nil {
		return nil, err
	}
	if fn.Iterator {
		if err := checkIterator(trace, fn); err != nil {
			return nil, err
		}
	}
	p := &compiler.Probe{Trace: trace, Func: fn}
	b := newBuilder(p, target)
	items := trace.Items
	if items == nil && m == compiler.NoMeasure {
		items = b.everything()
	}
	if len(trace.Aggregates()) > 0 {
		m = compiler.Tables
	}
	all, plain, conds, err := b.list(items, m)
	if err != nil {
		return nil, err
	}
	if m == compiler.Tables {
		stacksWhereCounted(all, conds)
	}
	settle(p, all, conds)
	keepCompared(p, conds)
	return p, settleMeasure(p, m, all, plain)
}

// list binds the items of a list and the trace's condition. It returns all values to
// record, or to count in a table, those of them without a predicate, and what must
// hold.
func (b *builder) list(items []*spec.Item, m compiler.Measure) (all, plain []*compiler.Value, conds compiler.AllOf, err error) {
	if m == compiler.Tables {
		if all, conds, err = b.table(items); err != nil {
			return nil, nil, nil, err
		}
		items = nil
	}
	for _, item := range items {
		values, err := b.recorded(item)
		if err != nil {
			return nil, nil, nil, err
		}
		for _, v := range values {
			if !slices.Contains(all, v) {
				all = append(all, v)
			}
		}
		value := values[0]
		if item.Pred == nil {
			plain = append(plain, value)
			continue
		}
		cond, err := b.leaf(item, false)
		if err != nil {
			return nil, nil, nil, err
		}
		conds = append(conds, cond)
	}
	if conds, err = b.withCond(conds); err != nil {
		return nil, nil, nil, err
	}
	conds = append(conds, b.onlyChanged()...)
	return all, plain, conds, nil
}

// withCond binds the trace's condition, and appends it to conditions that must hold, too.
func (b *builder) withCond(conds compiler.AllOf) (compiler.AllOf, error) {
	if b.trace.Cond == nil {
		return conds, nil
	}
	cond, err := b.cond(b.trace.Cond, false)
	if err != nil {
		return nil, err
	}
	return append(conds, flat[compiler.AllOf](cond)...), nil
}

// recorded binds the values that an item of the list records: its own, and the one
// that it is compared with.
func (b *builder) recorded(item *spec.Item) ([]*compiler.Value, error) {
	value, err := b.shared(item)
	if err != nil {
		return nil, err
	}
	if item, err = b.constantWith(item); err != nil {
		return nil, err
	}
	values := []*compiler.Value{value}
	if value.Before != nil {
		values = append(values, value.Before)
	}
	if with := b.with(item); with != nil {
		other, err := b.term(with)
		if err != nil {
			return nil, err
		}
		values = append(values, other)
	}
	return values, nil
}

// everything returns an item for every argument, and for the return value if
// there is one.
func (b *builder) everything() []*spec.Item {
	var items []*spec.Item
	at := b.trace.Func.At
	for i, param := range b.fn.Params {
		if b.fn.Iterator && i == 0 {
			continue // of the iteration, not of the object
		}
		items = append(items, &spec.Item{Value: &spec.Arg{Name: spec.Ident{Name: param.Name, At: at}}})
	}
	if b.fn.Result != nil && !neverReturns[b.fn.Name] && !resultLost(b.fn) {
		items = append(items, &spec.Item{Value: &spec.Return{At: at}})
	}
	return items
}

// shared binds an item's value once for all the places that name it.
func (b *builder) shared(item *spec.Item) (*compiler.Value, error) {
	if b.fetched != nil {
		return b.sharedFetch(item)
	}
	return b.sharedValue(item.Value, item.Format)
}

// sharedValue binds an expression once for all the places that have it.
func (b *binder) sharedValue(e spec.Expr, format spec.Ident) (*compiler.Value, error) {
	if d, ok := e.(*spec.Diff); ok {
		return b.diff(d, format)
	}
	key := e.String() + ":" + format.Name
	if v := b.values[key]; v != nil {
		return v, nil
	}
	v, err := b.value(e, format)
	if err == nil && b.values != nil {
		b.values[key] = v
	}
	return v, err
}
