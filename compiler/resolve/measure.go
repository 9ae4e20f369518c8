package resolve

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// settleMeasure decides what a probe aggregates over its calls. The values are
// those of the item list; the plain ones have no predicate. It keeps only the
// measured value and the value of the first call.
func settleMeasure(p *compiler.Probe, m compiler.Measure, values, plain []*compiler.Value) error {
	p.Measure = m
	switch m {
	case compiler.NoMeasure:
		return nil
	case compiler.Tables:
		measureSides(p)
		return nil
	}
	if err := chooseMeasured(p, append(slices.Clone(plain), values...)); err != nil {
		return err
	}
	p.First = firstKept(p, values)
	p.Entry, p.Return = nil, nil
	for _, v := range []*compiler.Value{p.Measured, p.First} {
		if v != nil && !slices.Contains(slices.Concat(p.Entry, p.Return), v) {
			deal(p, []*compiler.Value{v}, nil)
		}
	}
	keepCompared(p, compiler.AllOf(p.ReturnConds))
	if m == compiler.Changes && p.Measured.Base.Param != nil {
		p.Entry = append(p.Entry, baseWord(p.Measured))
	}
	p.OnReturn = p.OnReturn || m == compiler.Durations || m == compiler.Changes
	measureSides(p)
	return nil
}

// measureSides decides on which side calls are counted, and what is kept for that.
func measureSides(p *compiler.Probe) {
	p.OnEntry = !p.OnReturn
	p.Paired = p.OnReturn && len(p.Entry)+len(p.EntryConds) > 0
	p.Timed = p.Measure == compiler.Durations || slices.ContainsFunc(p.Return, isDuration)
	for l := range compiler.Leaves(compiler.AllOf(p.ReturnConds)) {
		p.Timed = p.Timed || isDuration(l.Value)
		p.Paired = p.Paired || l.Value.Side == compiler.AtEntry || ofBothSides([]*compiler.Value{l.Value})
	}
	p.Paired = p.Paired || ofBothSides(p.Return)
}

// chooseMeasured chooses the value to measure, if the measure needs one, and
// checks that the function provides it.
func chooseMeasured(p *compiler.Probe, values []*compiler.Value) error {
	fail := func(format string, args ...any) *spec.Error {
		return p.Trace.Errorf(p.Trace.Func.At, format, args...)
	}
	if why := withoutReturn(p); why != "" && (p.Measure == compiler.Durations || p.Measure == compiler.Changes) {
		return fail("%s, so that there are no %s to measure", why, p.Measure)
	}
	if p.Measure != compiler.Values && p.Measure != compiler.Changes {
		return nil
	}
	if len(values) == 0 {
		return fail("the %s of an item are to be measured, and the spec has none", p.Measure).
			WithHint("name it: %s(ITEM)", p.Trace.Func.Name)
	}
	v, why := counted(values[0])
	if p.Measure == compiler.Changes {
		v, why = compared(values[0])
	}
	if why != "" {
		return p.Trace.Errorf(measuredAt(p), "'%s' %s", values[0].Name, why)
	}
	p.Measured = v
	return nil
}

// measuredAt returns the position of the measured item: the first one without a
// predicate, or the first of all.
func measuredAt(p *compiler.Probe) spec.Span {
	items := p.Trace.Items
	switch i := slices.IndexFunc(items, func(item *spec.Item) bool { return item.Pred == nil }); {
	case len(items) == 0:
		return p.Trace.Func.At
	case i < 0:
		return items[0].Span()
	default:
		return items[i].Span()
	}
}

// withoutReturn returns the reason why calls of the function have no return, or
// "" if they have one.
func withoutReturn(p *compiler.Probe) string {
	if p.Offset > 0 {
		return "a place inside of " + p.Func.Name + " has no return"
	}
	if why := noReturn(p.Func); why != "" {
		return p.Func.Name + " " + why
	}
	return ""
}

// counted returns the value as a number to count, or the reason why it is not a
// number.
func counted(v *compiler.Value) (_ *compiler.Value, why string) {
	if v.Scalar == nil {
		return nil, "is " + describe(v.Type) + ", and numbers are counted"
	}
	if _, ok := btf.As[*btf.Pointer](v.Type); ok {
		return nil, "is " + describe(v.Type) + ", and numbers are counted: name what it points to"
	}
	return bare(v), ""
}

// compared returns the memory to compare, or the reason why a call cannot
// change it. For an argument that is a pointer, it is the memory that the
// pointer points to.
func compared(v *compiler.Value) (_ *compiler.Value, why string) {
	if pointsTo(v) {
		v = pointedTo(v)
	}
	size := 0
	if n := len(v.Path); n > 0 {
		size = v.Path[n-1].Size
	}
	switch {
	case v.Side == compiler.AtReturn:
		return nil, "is not known before the return, and cannot be compared with what it was"
	case v.Base.PerCPU != 0:
		return nil, "is another variable on each CPU, and the call can move"
	case v.Base.Param == nil && v.Base.Addr == 0:
		return nil, "is not memory that a call can change"
	case v.InWords(), v.Path[len(v.Path)-1].Addr:
		return nil, byValue
	case size > compiler.MostCompared:
		return nil, fmt.Sprintf("has %d bytes, and at most %d can be compared: name a part of it", size, compiler.MostCompared)
	}
	return bare(v), ""
}

// pointsTo reports whether a value is a word of an argument, unconverted, that is a
// pointer to something other than a string.
func pointsTo(v *compiler.Value) bool {
	return v.InWords() && v.Pointee != nil && v.Text == compiler.NoText && len(v.Casts) == 0 && v.Load.Width() == 64
}

// pointedTo returns what the pointer points to, as a value.
func pointedTo(v *compiler.Value) *compiler.Value {
	size, _ := btf.Sizeof(v.Pointee) // sizes of bound values are known
	t := *v
	t.Name, t.Type, t.Pointee, t.Format = "*"+v.Name, v.Pointee, nil, ""
	t.Path = []compiler.Access{{Size: size}}
	t.Load, t.Casts = scalarOf(v.Pointee), nil
	t.Scalar = t.Load
	return &t
}

// baseWord returns the word that the value begins with.
func baseWord(v *compiler.Value) *compiler.Value {
	number := &compiler.Scalar{Size: 8}
	return &compiler.Value{
		Name: "where " + v.Name + " is", Type: &btf.Pointer{Target: v.Type}, Side: v.Side,
		Base: v.Base, Load: number, Scalar: number,
	}
}

// firstKept returns the number to store of the first call: its return value, if
// the spec names that, or else the first number that is measured, listed or in a
// condition. It returns nil if there is none.
func firstKept(p *compiler.Probe, values []*compiler.Value) *compiler.Value {
	all := slices.Clone(values)
	for l := range p.Leaves() {
		if of := l.Value.Base.Of; of != nil && of.Compare != 0 {
			all = append(all, of.X, of.Y)
		} else {
			all = append(all, l.Value)
		}
	}
	all = slices.DeleteFunc(all, func(v *compiler.Value) bool { return v.Hidden }) // parts of an address
	isResult := func(v *compiler.Value) bool {
		return v.Side == compiler.AtReturn && v.InWords() && v.Base.Param == p.Func.Result && v.Scalar != nil
	}
	if i := slices.IndexFunc(all, isResult); i >= 0 {
		return bare(all[i])
	}
	if p.Measured != nil && p.Measured.Scalar != nil {
		return p.Measured
	}
	if i := slices.IndexFunc(all, func(v *compiler.Value) bool { return v.Scalar != nil }); i >= 0 {
		return bare(all[i])
	}
	return nil
}

// isDuration reports whether the value is the duration of the call.
func isDuration(v *compiler.Value) bool { return v.Uses(compiler.Duration) }

// bare returns the value itself, without what it points to or is compared with.
func bare(v *compiler.Value) *compiler.Value {
	if v.Pointee == nil && v.Before == nil {
		return v
	}
	b := *v
	b.Before = nil
	if v.Pointee != nil {
		b.Pointee, b.Text, b.Format = nil, compiler.NoText, ""
	}
	return &b
}
