package resolve

import (
	"reflect"
	"slices"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// ordered reports whether programs can publish a word after what was stored before it: by
// an exchange, or as x86 keeps the order of stores.
func ordered(t *compiler.Target) bool { return t.Features.CompareExchange || t.Arch == compiler.AMD64 }

// addSpan adds the two probes of a span to a plan.
func addSpan(plan *compiler.Plan, t *spec.Trace, target *compiler.Target, w Wishes, m compiler.Measure) error {
	switch {
	case !ordered(target):
		return t.Errorf(t.Ending.Func.At, "spans need Linux 5.18 on this machine").
			WithHint("trace both points, and join them by what they have in common")
	case w.Chain:
		return t.Errorf(t.Ending.Func.At, "a chain is made of single functions, and this is a span").
			WithHint("leave out -s")
	}
	s, err := bindSpan(t, target, m)
	if err != nil {
		return err
	}
	for _, p := range []*compiler.Probe{s.Begin, s.End} {
		p.Asked = t
		plan.Probes = append(plan.Probes, p)
		plan.Notes = append(plan.Notes, p.Func.Notes()...)
	}
	return nil
}

// points returns traces, each followed by the one at which its span ends, if it has a
// span.
func points(traces []*spec.Trace) (all []*spec.Trace) {
	for _, t := range traces {
		all = append(all, t)
		if t.Ending != nil {
			all = append(all, t.Ending)
		}
	}
	return all
}

// bindSpan binds both points of a span and their keys.
func bindSpan(t *spec.Trace, target *compiler.Target, m compiler.Measure) (*compiler.Span, error) {
	t.Ending.From = t.From
	switch {
	case len(t.Aggregates()) > 0:
		m = compiler.Tables
	case m > compiler.Calls:
		return nil, t.Errorf(t.Func.At, "the spans of two points can be counted, but no %s can be measured", m)
	}
	s := &compiler.Span{}
	var err error
	if s.Begin, s.BeginKey, err = bindPoint(t, target, m, false); err != nil {
		return nil, err
	}
	if s.End, s.EndKey, err = bindPoint(t.Ending, target, m, true); err != nil {
		return nil, err
	}
	if err := joinTable(t, s); err != nil {
		return nil, err
	}
	s.Begin.Span, s.End.Span, s.End.Measure = s, s, m
	if err := sameKeys(t, s); err != nil {
		return nil, err
	}
	return s, sameCall(t, s)
}

// bindPoint binds one point of a span. The point is either the entry of a function
// or its return.
func bindPoint(t *spec.Trace, target *compiler.Target, m compiler.Measure, end bool) (*compiler.Probe, *compiler.Value, error) {
	if spec.IsGlob(t.Func.Name) {
		return nil, nil, t.Errorf(t.Func.At, "a span joins two single functions, and '%s' means many", t.Func.Name)
	}
	if asksOver(t) {
		return nil, nil, t.Errorf(t.Func.At, "'after' and 'diff' are about both sides of a call, and a point of a span is one of them").
			WithHint("trace %s by itself", t.Func.Name)
	}
	fn, err := FindFunction(t, target)
	if err != nil {
		return nil, nil, err
	}
	p := &compiler.Probe{Trace: t, Func: fn}
	b := newBuilder(p, target)
	b.end = end
	key, err := b.key()
	if err != nil {
		return nil, nil, err
	}
	items := t.Items
	if items == nil && m != compiler.Tables {
		items = b.pointItems(key)
	}
	values, _, conds, err := b.list(items, m)
	if err != nil {
		return nil, nil, err
	}
	return p, key, b.settlePoint(values, conds, key)
}

// joinTable makes the end count by the key parts of both points: a row has the values
// of the beginning, then those of the end.
func joinTable(t *spec.Trace, s *compiler.Span) error {
	begin, end := s.Begin, s.End
	for _, a := range end.Aggregates {
		if slices.ContainsFunc(begin.Aggregates, func(b *compiler.Aggregate) bool { return b.Name == a.Name }) {
			return t.Errorf(t.Ending.Func.At, "both points have %s, and a table has it once", a.Name)
		}
	}
	end.Key = slices.Concat(begin.Key, end.Key)
	end.Aggregates = slices.Concat(begin.Aggregates, end.Aggregates)
	begin.Key, begin.Aggregates = nil, nil
	if n := len(end.Aggregates); n > mostAggregates {
		return t.Errorf(t.Ending.Func.At, "a spec has at most %d aggregates, and both points have %d", mostAggregates, n)
	}
	room := 0
	for _, v := range end.Key {
		if room += compiler.KeyRoom(v); room > compiler.MostKey {
			return t.Errorf(t.Ending.Func.At, "the key has %d bytes with '%s', and %d is the limit: name fewer values", room, v.Name, compiler.MostKey)
		}
	}
	return nil
}

// pointItems returns the items of a point without a list: every argument, or the
// return value if the key is one.
func (b *builder) pointItems(key *compiler.Value) (items []*spec.Item) {
	atReturn := latest(key) == compiler.AtReturn
	for _, item := range b.everything() {
		if _, result := item.Value.(*spec.Return); result == atReturn {
			items = append(items, item)
		}
	}
	return items
}

// latest returns the latest side at which a part of the value can be read.
func latest(v *compiler.Value) (side compiler.Side) {
	for part := range v.Values {
		side = max(side, part.Side)
	}
	return side
}

// settlePoint assigns all values and conditions of a point to its one side.
func (b *builder) settlePoint(values []*compiler.Value, conds compiler.AllOf, key *compiler.Value) error {
	used := slices.AppendSeq(append([]*compiler.Value{key}, values...), compiler.LeafValues(conds))
	var entry, ret *compiler.Value
	for _, v := range used {
		for part := range v.Values {
			switch part.Side {
			case compiler.AtEntry:
				entry = part
			case compiler.AtReturn:
				ret = part
			}
		}
	}
	if entry != nil && ret != nil {
		return b.errorf(b.trace.Func.At, "this point of the span is the entry of %s for '%s', and its return for '%s'", b.fn.Name, entry.Name, ret.Name).
			WithHint("a point is one side of a call: name arguments only, or the return value only")
	}
	side := compiler.AtEntry
	if ret != nil {
		side = compiler.AtReturn
	}
	for _, v := range used {
		for part := range v.Values {
			part.Side = side
		}
	}
	settleSides(used)
	deal(b.probe, values, conds)
	b.probe.OnEntry, b.probe.OnReturn = ret == nil, ret != nil
	return nil
}

// key binds the key of a point: a number of up to 64 bits.
func (b *builder) key() (*compiler.Value, error) {
	e := b.trace.Key
	var err error
	spec.Walk(e, func(x spec.Expr) {
		if d, ok := x.(*spec.Builtin); ok && d.Name.Name == "duration" {
			err = b.errorf(d.Span(), "$duration is known when the span has ended, so that it cannot be the key")
		}
	})
	if err != nil {
		return nil, err
	}
	v, err := b.sharedValue(e, spec.Ident{})
	if err != nil {
		return nil, err
	}
	if v.Scalar == nil || v.IsText() && v.Text == compiler.NoText {
		return nil, b.errorf(e.Span(), "'%s' is %s, and a key is a number or a pointer", v.Name, describe(v.Type))
	}
	return v, nil
}

// sameKeys checks that the keys of both points can be equal.
func sameKeys(t *spec.Trace, s *compiler.Span) error {
	x, y := s.BeginKey, s.EndKey
	if why := different(x, y); why != "" {
		return t.Errorf(t.Ending.Key.Span(), "the keys of the two points cannot be compared: '%s' of %s is %s, and '%s' of %s is %s",
			x.Name, s.Begin.Func.Name, describe(x.Type), y.Name, s.End.Func.Name, describe(y.Type)).WithHint("%s", why)
	}
	return nil
}

// different returns what to do about keys of two types, or "" if they can be
// compared: pointers to the same type, or numbers of the same size and sign.
func different(x, y *compiler.Value) string {
	p, first := btf.As[*btf.Pointer](x.Type)
	q, second := btf.As[*btf.Pointer](y.Type)
	switch {
	case first != second:
		return "name a value of the same type at both, or cast the pointer: (u64)" + pointerOf(x, y, first).Name
	case first:
		a, b := btf.UnderlyingType(p.Target), btf.UnderlyingType(q.Target)
		if compiler.IsVoid(a) || compiler.IsVoid(b) || a.TypeName() == b.TypeName() {
			return ""
		}
		return "a cast makes them equal: (void *)" + y.Name
	case x.Scalar.Width() != y.Scalar.Width() || x.Scalar.Signed != y.Scalar.Signed:
		return "a cast makes them equal, such as (u32)" + y.Name
	}
	return ""
}

func pointerOf(x, y *compiler.Value, first bool) *compiler.Value {
	if first {
		return x
	}
	return y
}

// sameCall refuses a span that the same moment would begin and end, as it is not
// known which program of a function runs first. Those of a tracepoint run in the
// order in which they are attached, the end before the beginning.
func sameCall(t *spec.Trace, s *compiler.Span) error {
	if s.Begin.Func.Tracepoint || s.Begin.Func.Symbol != s.End.Func.Symbol || s.Begin.OnEntry != s.End.OnEntry {
		return nil
	}
	begin, end := s.BeginKey, s.EndKey
	if begin.Name != end.Name && !(reflect.DeepEqual(begin.Base, end.Base) && slices.Equal(begin.Path, end.Path)) { // file, or $arg1
		return nil
	}
	return t.Errorf(t.Ending.Func.At, "the span begins and ends at the same moment of %s, with the same key", s.End.Func.Name).
		WithHint("its end can be the return: %s => %s(return) on $tid", s.Begin.Func.Name, s.End.Func.Name)
}
