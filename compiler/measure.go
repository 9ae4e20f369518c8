package compiler

import (
	"slices"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// Measure is what a probe's programs keep of matching calls in place of records.
// It is in maps of the programs, one part for each CPU, and complete whatever
// becomes of the ring buffer. A measured probe has one [Event], of which no
// record is written; its calls are counted as with [Options].Tally, but for
// those of processes that are not traced, which do not count at all.
//
// A call counts when its fate is known: at return if the spec, or the measure,
// asks for the return. One that has begun before the probe is attached does not
// count then, and one that is under way when the session is stopped only if a
// condition at entry has rejected it.
type Measure uint8

// The measures. Each of them keeps the number of calls, see [Counters], and the
// value of the first one.
const (
	NoMeasure Measure = iota // every matching call is an event
	Calls                    // nothing else
	Durations                // how long the calls took
	Values                   // the numbers that an item was
	Changes                  // whether the calls have changed an item
)

func (m Measure) String() string {
	return [...]string{"events", "calls", "durations", "values", "changes"}[m]
}

// mostCompared is how many bytes of an item are compared.
const mostCompared = 256

// measure settles what a probe keeps of its calls. The values are those of the
// list, of which the plain ones have no predicate. What nothing is kept of is
// left out.
func (p *Probe) measure(m Measure, values, plain []*Value) error {
	p.Measure = m
	if m == NoMeasure {
		return nil
	}
	if err := p.chooseMeasured(append(slices.Clone(plain), values...)); err != nil {
		return err
	}
	p.First = p.first(values)
	p.Entry, p.Return = nil, nil
	for _, v := range []*Value{p.Measured, p.First} {
		if v != nil && !slices.Contains(slices.Concat(p.Entry, p.Return), v) {
			p.deal([]*Value{v}, nil)
		}
	}
	if m == Changes && p.Measured.Base.Param != nil {
		p.Entry = append(p.Entry, p.Measured.baseWord())
	}
	p.OnReturn = p.OnReturn || m == Durations || m == Changes
	p.OnEntry = !p.OnReturn
	p.Paired = p.OnReturn && len(p.Entry)+len(p.EntryTests) > 0
	p.Timed = m == Durations || slices.ContainsFunc(p.Return, (*Value).isDuration)
	for l := range leaves(AllOf(p.ReturnTests)) {
		p.Timed = p.Timed || l.Value.isDuration()
		p.Paired = p.Paired || l.Value.Side == AtEntry
	}
	return nil
}

func (v *Value) isDuration() bool { return v.Base.Builtin == Duration }

// chooseMeasured chooses the value that is measured, if there is to be one, and
// checks that the function has what is wanted of it.
func (p *Probe) chooseMeasured(values []*Value) error {
	fail := func(format string, args ...any) *spec.Error {
		return spec.Errorf(p.Trace.Text, p.Trace.Func.At, format, args...)
	}
	if why := p.withoutReturn(); why != "" && (p.Measure == Durations || p.Measure == Changes) {
		return fail("%s, so that there are no %s to measure", why, p.Measure)
	}
	if p.Measure != Values && p.Measure != Changes {
		return nil
	}
	if len(values) == 0 {
		return fail("the %s of an item are to be measured, and the spec has none", p.Measure).
			WithHint("name it: %s(ITEM)", p.Trace.Func.Name)
	}
	v, why := values[0].counted()
	if p.Measure == Changes {
		v, why = values[0].compared()
	}
	if why != "" {
		return fail("'%s' %s", values[0].Name, why)
	}
	p.Measured = v
	return nil
}

// withoutReturn is why calls of the function have no return; "" if they have.
func (p *Probe) withoutReturn() string {
	switch name := p.Func.Name; {
	case p.Func.Tracepoint:
		return name + " is a tracepoint, which has no return"
	case neverReturns[name]:
		return name + " never returns"
	case p.Offset > 0:
		return "a place inside of " + name + " has no return"
	}
	return ""
}

// counted is the value as a number to count, or why it is none.
func (v *Value) counted() (_ *Value, why string) {
	if v.Scalar == nil {
		return nil, "is " + describe(v.Type) + ", and numbers are counted"
	}
	if _, ok := btf.As[*btf.Pointer](v.Type); ok {
		return nil, "is " + describe(v.Type) + ", and numbers are counted: name what it points to"
	}
	return v.bare(), ""
}

// compared is the memory to compare, or why a call cannot change it. Of an
// argument that is a pointer that is what it points to.
func (v *Value) compared() (_ *Value, why string) {
	const byValue = "is passed by value, and no call can change it"
	if v.inWords() && v.Pointee != nil && v.Text == NoText {
		v = v.target()
	}
	size := 0
	if n := len(v.Path); n > 0 {
		size = v.Path[n-1].Size
	}
	switch {
	case v.Side == AtReturn:
		return nil, "is not known before the return, and cannot be compared with what it was"
	case v.Base.PerCPU != 0:
		return nil, "is another variable on each CPU, and the call can move"
	case v.Base.Param == nil && v.Base.Addr == 0:
		return nil, "is no memory that a call could change"
	case v.inWords(), v.Path[len(v.Path)-1].Addr:
		return nil, byValue
	case size > mostCompared:
		return nil, "has more bytes than can be compared: name a part of it"
	}
	return v.bare(), ""
}

// target is what the pointer points to, as a value.
func (v *Value) target() *Value {
	size, _ := btf.Sizeof(v.Pointee) // bound values have sizes
	t := *v
	t.Name, t.Type, t.Pointee, t.Format = "*"+v.Name, v.Pointee, nil, ""
	t.Path = []Access{{Size: size}}
	t.Load, t.Casts = scalarOf(v.Pointee), nil
	t.Scalar = t.Load
	return &t
}

// bare is the value without what it points to.
func (v *Value) bare() *Value {
	if v.Pointee == nil {
		return v
	}
	b := *v
	b.Pointee, b.Text, b.Format = nil, NoText, ""
	return &b
}

// baseWord is the word that the value begins with.
func (v *Value) baseWord() *Value {
	number := &Scalar{Size: 8}
	return &Value{
		Name: "where " + v.Name + " is", Type: &btf.Pointer{Target: v.Type}, Side: v.Side,
		Base: v.Base, Load: number, Scalar: number,
	}
}

// first is the number that is kept of the first call: what it has returned, if
// the spec asks for that, or else what is measured, listed or tested first.
func (p *Probe) first(values []*Value) *Value {
	all := slices.Clone(values)
	for l := range leaves(AllOf(slices.Concat(p.EntryTests, p.ReturnTests))) {
		all = append(all, l.Value)
	}
	isResult := func(v *Value) bool {
		return v.Side == AtReturn && v.inWords() && v.Base.Param == p.Func.Result && v.Scalar != nil
	}
	if i := slices.IndexFunc(all, isResult); i >= 0 {
		return all[i].bare()
	}
	if p.Measured != nil && p.Measured.Scalar != nil {
		return p.Measured
	}
	if i := slices.IndexFunc(all, func(v *Value) bool { return v.Scalar != nil }); i >= 0 {
		return all[i].bare()
	}
	return nil
}
