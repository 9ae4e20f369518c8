package compiler

import (
	"fmt"
	"slices"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// An event is what a kprobe_events line defines: one at the entry or at the
// return of a function, with all its arguments.

// bindEvent binds a kprobe_events line.
func bindEvent(trace *spec.Trace, target *Target, w Wishes, m Measure) (*Probe, error) {
	trace, err := named(trace, target)
	if err != nil {
		return nil, err
	}
	fn, err := eventFunction(trace, target)
	if err != nil {
		return nil, err
	}
	if trace.Probe.Address != 0 {
		fn.Addrs = []uint64{trace.Probe.Address - trace.Probe.Offset}
	}
	if trace.Probe.Offset > 0 && len(fn.Addrs) > 1 {
		return nil, spec.Errorf(trace.Text, trace.Func.At, "%s is the name of %d functions, and the offset is in one of them", fn.Name, len(fn.Addrs))
	}
	if size, offset := fn.size(target), trace.Probe.Offset; size > 0 && offset >= size {
		return nil, spec.Errorf(trace.Text, trace.Func.At, "%s has %d bytes, and the offset %d is behind them", fn.Name, size, offset)
	}
	trace, err = trace.Expand(slices.Collect(paramNames(fn)))
	if err != nil {
		return nil, err
	}
	p := &Probe{Trace: trace, Func: fn, Offset: trace.Probe.Offset, Registers: trace.Probe.Offset > 0 || fn.Untyped}
	b := &builder{binder: binder{trace: trace, target: target, fn: fn}, probe: p, fetched: map[*spec.Item]*Value{}}
	var all []*Value
	for i, item := range trace.Items {
		values, err := b.fetchAll(item, trace.ItemNames()[i])
		if err != nil {
			return nil, err
		}
		all = append(all, values...)
	}
	if m == NoMeasure && b.addsCaller(all, w) {
		caller, err := b.fetchAll(&spec.Item{Value: &spec.ReturnAddress{At: trace.Func.At}}, CallerName)
		if err != nil {
			return nil, err
		}
		all = append(all, caller...)
	}
	var tests AllOf
	if trace.Cond != nil {
		test, err := b.test(trace.Cond, false)
		if err != nil {
			return nil, err
		}
		tests = flatAll(test)
	}
	p.settleEvent(all, tests)
	return p, p.measure(m, all, all)
}

// CallerName is the value of an event that its line does not name: where the
// function returns to, as in the kernel's own events.
const CallerName = "__probe_ret_ip"

// addsCaller says whether that value is added. Only kretprobes know it at no
// cost, so lines that mean one get it, if it can be made.
func (b *builder) addsCaller(values []*Value, w Wishes) bool {
	probe, f := b.trace.Probe, b.target.Features
	return probe.Return && probe.Kind != spec.Fprobe && (w.Attach == "" || w.Attach == Kprobe) &&
		f.NoKprobe == "" && b.returnsKnown() &&
		!slices.ContainsFunc(values, func(v *Value) bool { return v.Base.Caller })
}

// named gives a trace at an address the function that the address is in, and
// the offset; others are returned as they are.
func named(trace *spec.Trace, target *Target) (*spec.Trace, error) {
	if trace.Probe == nil || trace.Probe.Address == 0 || trace.Func.Name != "" {
		return trace, nil
	}
	addr := trace.Probe.Address
	fail := func(format string, args ...any) error {
		return spec.Errorf(trace.Text, trace.Func.At, "the function at %#x is not known: %s", addr, fmt.Sprintf(format, args...))
	}
	switch table := target.Symbols; {
	case table == nil:
		return nil, fail("there is no symbol table")
	case table.Hidden():
		return nil, fail("%v", table.NeedAddresses())
	}
	symbol, offset, ok := target.Symbols.At(addr)
	switch {
	case !ok, !symbol.Text():
		return nil, fail("it is in none")
	case offset > 0 && trace.Probe.Return:
		return nil, spec.Errorf(trace.Text, trace.Func.At, "the return of a function has no offset, and this is %s+%d", symbol.Name, offset).
			WithHint("write %#x", addr-offset)
	}
	probe := *trace.Probe
	probe.Offset = offset
	at := *trace
	at.Probe = &probe
	at.Func.Name, at.Module.Name = symbol.Name, symbol.Module
	return &at, nil
}

// fetchAll binds an argument of an event: one value, but of an array of strings
// one for each of them.
func (b *builder) fetchAll(item *spec.Item, name string) ([]*Value, error) {
	if t := item.Type; t == nil || t.Count == 0 || !t.IsText() {
		v, err := b.shared(item)
		if err != nil {
			return nil, err
		}
		v.Name = name
		return []*Value{v}, nil
	}
	values, err := b.strings(item)
	for i, v := range values {
		v.Name = fmt.Sprintf("%s[%d]", name, i)
	}
	return values, err
}

// sharedFetch binds an argument of an event, once for the record and for the
// tests of it.
func (b *builder) sharedFetch(item *spec.Item) (*Value, error) {
	if field, ok := item.Value.(*spec.Field); ok {
		return b.field(field)
	}
	if v := b.fetched[item]; v != nil {
		return v, nil
	}
	v, err := b.fetch(item)
	if err == nil {
		b.fetched[item] = v
	}
	return v, err
}

// field binds the field of a test.
func (b *builder) field(f *spec.Field) (*Value, error) {
	v, err := b.sharedFetch(f.Of)
	switch {
	case err != nil:
		return nil, err
	case f.As.Name == "ustring":
		pointer := *v
		pointer.Name = f.Name.Name
		return &pointer, b.format(&pointer, f.As)
	}
	if v.Name == "" {
		v.Name = f.Name.Name
	}
	return v, nil
}

// fieldTest binds a test of a kind that only fields have; nil: it is none.
func (b *builder) fieldTest(item *spec.Item, v *Value, negative bool) (Test, error) {
	f, ok := item.Value.(*spec.Field)
	switch {
	case !ok:
		return nil, nil
	case item.Pred.Const.Kind == spec.CPUs:
		return b.cpus(item, v, negative)
	case f.As.Name == "function":
		return b.inFunction(item, v, negative)
	case f.Of.Type != nil && f.Of.Type.Name == "symstr":
		return b.ofSymbol(item, v, negative)
	}
	return nil, nil
}

// cpus binds a test of whether a number is one of a set.
func (b *builder) cpus(item *spec.Item, v *Value, negative bool) (Test, error) {
	c := item.Pred.Const
	if v.Scalar == nil {
		return nil, b.errorf(c.At, "'%s' is %s, no number of a processor", v.Name, describe(v.Type))
	}
	single := len(c.CPUs) == 1 && c.CPUs[0].First == c.CPUs[0].Last
	if item.Pred.Op != spec.Mask && !single {
		return nil, b.errorf(c.At, "'%s' is one processor, and %s several", v.Name, c).
			WithHint("whether it is one of them is asked with '&': %s & %s", item.Value, c)
	}
	var ranges []Range
	for _, r := range c.CPUs {
		if lo, hi := v.Scalar.limits(); uint64(r.Last) > hi || int64(lo) > int64(r.First) {
			return nil, b.errorf(c.At, "%d does not fit '%s', which is %s and holds %s", r.Last, v.Name, describe(v.Type), v.Scalar.bounds())
		}
		ranges = append(ranges, Range{uint64(r.First), uint64(r.Last)})
	}
	return inRanges(item, v, ranges, negative), nil
}

// settleEvent deals values and tests out to the two sides of a call. All of
// them are for one event.
func (p *Probe) settleEvent(values []*Value, tests AllOf) {
	side := AtEntry
	if p.Trace.Probe.Return {
		side = AtReturn
	}
	used := slices.Clone(values)
	for l := range leaves(tests) {
		used = append(used, l.Value)
	}
	for _, v := range used {
		if v.Side == AnySide {
			v.Side = side
		}
		p.Paired = p.Paired || v.Side != side
		p.Registers = p.Registers || v.Base.Register
		p.Caller = p.Caller || v.Base.Caller
	}
	p.OnEntry, p.OnReturn = side == AtEntry, side == AtReturn
	p.deal(values, tests)
}
