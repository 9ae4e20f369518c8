package resolve

import (
	"fmt"
	"slices"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// bindEvent binds a kprobe_events line, which defines one event at the entry or at
// the return of a function, with all its arguments.
func bindEvent(trace *spec.Trace, target *compiler.Target, w Wishes, m compiler.Measure) (*compiler.Probe, error) {
	trace, err := named(trace, target)
	if err != nil {
		return nil, err
	}
	fn, err := eventFunction(trace, target)
	if err != nil {
		return nil, err
	}
	if trace.Line.Address != 0 {
		fn.Addrs = []uint64{trace.Line.Address - trace.Line.Offset}
	}
	if trace.Line.Offset > 0 && len(fn.Addrs) > 1 {
		return nil, trace.Errorf(trace.Func.At, "%s is the name of %d functions, and the offset is in one of them", spec.Subject(fn.Name), len(fn.Addrs))
	}
	if size, offset := sizeOf(fn, target), trace.Line.Offset; size > 0 && offset >= size {
		return nil, trace.Errorf(trace.Func.At, "%s has %d bytes, and the offset %d is behind them", spec.Subject(fn.Name), size, offset)
	}
	trace, err = trace.Expand(paramNames(fn))
	if err != nil {
		return nil, err
	}
	p := &compiler.Probe{Trace: trace, Func: fn, Offset: trace.Line.Offset, Registers: trace.Line.Offset > 0 || fn.Untyped}
	b := newBuilder(p, target)
	b.values, b.fetched = nil, map[*spec.Item]*compiler.Value{}
	var all []*compiler.Value
	for i, item := range trace.Items {
		values, err := b.fetchAll(item, trace.ItemNames()[i])
		if err != nil {
			return nil, err
		}
		all = append(all, values...)
	}
	if m == compiler.NoMeasure && b.addsCaller(all, w) {
		caller, err := b.fetchAll(&spec.Item{Value: &spec.ReturnAddress{At: trace.Func.At}}, compiler.CallerName)
		if err != nil {
			return nil, err
		}
		all = append(all, caller...)
	}
	conds, err := b.withCond(nil)
	if err != nil {
		return nil, err
	}
	settleEvent(p, all, conds)
	return p, settleMeasure(p, m, all, all)
}

// addsCaller reports whether the caller is added to the values. Only kretprobes
// know it at no cost, so it is added to lines that ask for a kretprobe, if one
// can be created.
func (b *builder) addsCaller(values []*compiler.Value, w Wishes) bool {
	line, f := b.trace.Line, b.target.Features
	return line.Return && line.Kind != spec.Fprobe && (w.Attach == "" || w.Attach == compiler.Kprobe) &&
		f.NoKprobe == "" && b.returnsKnown() &&
		!slices.ContainsFunc(values, func(v *compiler.Value) bool { return v.Base.Caller })
}

// named returns a trace at an address with the function at that address and the
// offset in it. It returns other traces as they are.
func named(trace *spec.Trace, target *compiler.Target) (*spec.Trace, error) {
	if trace.Line == nil || trace.Line.Address == 0 || trace.Func.Name != "" {
		return trace, nil
	}
	addr := trace.Line.Address
	fail := func(format string, args ...any) *spec.Error {
		return trace.Errorf(trace.Func.At, "the function at %#x is not known: %s", addr, fmt.Sprintf(format, args...))
	}
	switch table := target.Symbols; {
	case table == nil:
		return nil, withoutSymbols(fail("there is no symbol table"))
	case table.Hidden():
		return nil, fail("%v", table.NeedAddresses())
	}
	symbol, offset, ok := target.Symbols.At(addr)
	switch {
	case !ok, !symbol.Text():
		return nil, fail("it is in none")
	case offset > 0 && trace.Line.Return:
		return nil, trace.Errorf(trace.Func.At, "the return of a function has no offset, and this is %s+%d", symbol.Name, offset).
			WithHint("write %#x", addr-offset)
	}
	line := *trace.Line
	line.Offset = offset
	at := *trace
	at.Line = &line
	at.Func.Name, at.Module.Name = symbol.Name, symbol.Module
	return &at, nil
}

// fetchAll binds an argument of an event. The result is one value, except for
// an array of strings, which has one value for each of them.
func (b *builder) fetchAll(item *spec.Item, name string) ([]*compiler.Value, error) {
	if t := item.Type; t == nil || t.Count == 0 || !t.IsText() {
		v, err := b.shared(item)
		if err != nil {
			return nil, err
		}
		v.Name = name
		return []*compiler.Value{v}, nil
	}
	values, err := b.strings(item)
	for i, v := range values {
		v.Name = fmt.Sprintf("%s[%d]", name, i)
	}
	return values, err
}

// sharedFetch binds an argument of an event once, for both the record and its
// conditions.
func (b *builder) sharedFetch(item *spec.Item) (*compiler.Value, error) {
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

// field binds the field of a condition.
func (b *builder) field(f *spec.Field) (*compiler.Value, error) {
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

// fieldCond binds a condition of a kind that only fields have. It returns nil for
// other conditions.
func (b *builder) fieldCond(item *spec.Item, v *compiler.Value, negative bool) (compiler.Cond, error) {
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

// cpus binds a condition on whether a number is in a set of CPUs.
func (b *builder) cpus(item *spec.Item, v *compiler.Value, negative bool) (compiler.Cond, error) {
	c := item.Pred.Const
	if v.Scalar == nil {
		return nil, b.errorf(c.At, "'%s' is %s, not the number of a CPU", v.Name, describe(v.Type))
	}
	single := len(c.CPUs) == 1 && c.CPUs[0].First == c.CPUs[0].Last
	if item.Pred.Op != spec.Mask && !single {
		return nil, b.errorf(c.At, "'%s' is one processor, and %s several", v.Name, c).
			WithHint("use '&' to ask whether it is one of them: %s & %s", item.Value, c)
	}
	var ranges []compiler.Range
	for _, r := range c.CPUs {
		if lo, hi := limits(v.Scalar); uint64(r.Last) > hi || int64(lo) > int64(r.First) {
			return nil, b.errorf(c.At, "%d does not fit '%s', which is %s and holds %s", r.Last, v.Name, describe(v.Type), bounds(v.Scalar))
		}
		ranges = append(ranges, compiler.Range{Low: uint64(r.First), High: uint64(r.Last)})
	}
	return inRanges(item, v, ranges, negative), nil
}

// settleEvent assigns values and conditions to the two sides of a call. All of them
// belong to one event.
func settleEvent(p *compiler.Probe, values []*compiler.Value, conds compiler.AllOf) {
	side := compiler.AtEntry
	if p.Trace.Line.Return {
		side = compiler.AtReturn
	}
	for _, v := range slices.AppendSeq(slices.Clone(values), compiler.LeafValues(conds)) {
		if v.Side == compiler.AnySide {
			v.Side = side
		}
		p.Paired = p.Paired || v.Side != side
		p.Registers = p.Registers || v.Base.Register
		p.Caller = p.Caller || v.Base.Caller
	}
	p.OnEntry, p.OnReturn = side == compiler.AtEntry, side == compiler.AtReturn
	deal(p, values, conds)
}
