package resolve

import (
	"slices"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

const (
	// mostAggregates is the largest number of aggregates of a spec.
	mostAggregates = 8
	// mostBuckets is the largest number of buckets between the bounds of a
	// histogram.
	mostBuckets = 1000
)

// table binds the items of a spec with aggregates: the key, what is counted by it,
// and the conditions.
func (b *builder) table(items []*spec.Item) (all []*compiler.Value, conds compiler.AllOf, err error) {
	p := b.probe
	room := 0
	for _, item := range items {
		a, ok := item.Value.(*spec.Aggregate)
		if ok {
			err = b.aggregate(a)
		} else {
			err = b.keyPart(item, &room)
		}
		if err != nil {
			return nil, nil, err
		}
		if item.Pred != nil {
			cond, err := b.leaf(item, false)
			if err != nil {
				return nil, nil, err
			}
			conds = append(conds, cond)
		}
	}
	all = slices.Clone(p.Key)
	for _, a := range p.Aggregates {
		if a.Value != nil && !slices.Contains(all, a.Value) {
			all = append(all, a.Value)
		}
	}
	return all, conds, nil
}

// aggregate binds an aggregate.
func (b *builder) aggregate(e *spec.Aggregate) error {
	p := b.probe
	if len(p.Aggregates) == mostAggregates {
		return b.errorf(e.At, "a spec has at most %d aggregates", mostAggregates)
	}
	a := &compiler.Aggregate{Kind: compiler.AggregateKind(slices.Index(compiler.AggregateNames[:], e.Name.Name)), Name: e.String()}
	if slices.ContainsFunc(p.Aggregates, func(other *compiler.Aggregate) bool { return other.Name == a.Name }) {
		return b.errorf(e.At, "%s is there twice: leave one out", a.Name)
	}
	p.Aggregates = append(p.Aggregates, a)
	if e.X == nil {
		return nil
	}
	if d, ok := e.X.(*spec.Diff); ok {
		return b.errorf(d.Span(), "what differs is shown of each call, and cannot be counted").
			WithHint("write the difference: %s(%s)", e.Name.Name, &spec.Binary{Op: spec.Sub, X: &spec.After{X: d.X}, Y: d.X})
	}
	v, err := b.sharedValue(e.X, spec.Ident{})
	if err == nil {
		err = b.asNumber(v, e.X.Span())
	}
	if err != nil {
		return err
	}
	bare, why := counted(v)
	if why != "" {
		return b.errorf(e.X.Span(), "'%s' %s", v.Name, why)
	}
	a.Value = bare
	if a.Kind == compiler.Linear {
		return b.bounds(a, e)
	}
	return nil
}

// judgeable returns an error if a comparison of an aggregate always or never holds, as its
// values have no such numbers. For a glob, it returns the error if that is so for all
// functions.
func judgeable(plan *compiler.Plan, t *spec.Trace, row *spec.Item) (err error) {
	for _, p := range plan.Probes {
		for _, a := range p.Aggregates {
			if p.Asked != t || a.Value == nil || a.Name != row.Value.String() {
				continue
			}
			v := *a.Value
			v.Name = a.Name
			switch {
			case a.Kind == compiler.Avg: // of numbers without a bit, it may have that bit
				v.Base.Of = nil
			case a.Kind != compiler.Sum:
			case a.Signed():
				return nil
			default: // the sum of values of few bits may have many
				v = compiler.Value{Name: a.Name, Type: &btf.Int{Name: "a sum of unsigned numbers", Size: 8}, Scalar: &compiler.Scalar{Bits: 64}}
			}
			b := &binder{trace: t, fn: p.Func}
			if _, err = b.comparison(row, &v, row.Pred.Const); err == nil {
				return nil
			}
		}
	}
	return err
}

// bounds binds the bounds of a histogram with buckets of equal width.
func (b *builder) bounds(a *compiler.Aggregate, e *spec.Aggregate) error {
	var numbers [3]uint64
	for i, c := range e.Bounds {
		n, err := b.number(a.Value, c)
		if err != nil {
			return err
		}
		last := n // in the highest bucket
		if i == 1 && !n.Neg && n.Abs > 0 && a.Value.Scalar.Width() < 64 {
			last.Abs--
		}
		switch {
		case i == 2 && n.Abs == 0:
			return b.errorf(c.At, "the step of the histogram is 0")
		case i == 2 && n.Neg:
			return b.errorf(c.At, "the step of the histogram is negative")
		case i < 2 && !fits(a.Value.Scalar, last):
			return b.errorf(c.At, "%s does not fit '%s', which is %s and holds %s", c.Text, a.Value.Name, kindOf(a.Value), bounds(a.Value.Scalar))
		}
		numbers[i] = n.Abs
		if n.Neg {
			numbers[i] = -n.Abs
		}
	}
	a.Low, a.High, a.Step = numbers[0], numbers[1], numbers[2]
	if a.High == a.Low || !a.Less(a.Low, a.High) {
		return b.errorf(e.Bounds[1].At, "the upper bound of the histogram, %s, is not above the lower bound, %s", e.Bounds[1], e.Bounds[0])
	}
	if n := a.Steps(); n > mostBuckets {
		return b.errorf(e.Bounds[2].At, "the histogram would have %d buckets, and %d is the limit", n, mostBuckets).
			WithHint("make the step larger")
	}
	return nil
}

// keyPart binds an item of the key. The bytes that the key takes so far are in room.
func (b *builder) keyPart(item *spec.Item, room *int) error {
	if d, ok := item.Value.(*spec.Diff); ok {
		return b.errorf(d.Span(), "what differs is shown of each call, and cannot be a part of the key").WithHint("name the value: after(...)")
	}
	values, err := b.recorded(item)
	if err != nil {
		return err
	}
	for _, v := range values {
		if slices.Contains(b.inKey, v) {
			continue
		}
		b.inKey = append(b.inKey, v)
		v = keyed(v)
		if v.Base.Builtin == compiler.UserStack {
			return b.errorf(item.Span(), "'%s' does not fit into a key", v.Name).
				WithHint("$kstack does, and without an aggregate each call shows its $ustack")
		}
		if v.Text == compiler.PathText {
			return b.errorf(item.Span(), "'%s' is a path, which does not fit into a key", v.Name).WithHint("use the last name: %s", lastName(v))
		}
		if size, err := btf.Sizeof(v.Type); err == nil && v.Scalar == nil && v.Base.Builtin == compiler.NoBuiltin && size > compiler.MostKeyPart {
			return b.errorf(item.Span(), "'%s' has %d bytes, and a part of the key has at most %d: name a part of it", v.Name, size, compiler.MostKeyPart)
		}
		if *room += compiler.KeyRoom(v); *room > compiler.MostKey {
			return b.errorf(item.Span(), "the key has %d bytes with '%s', and %d is the limit: name fewer values", *room, v.Name, compiler.MostKey)
		}
		b.probe.Key = append(b.probe.Key, v)
	}
	return nil
}

// keyed returns the value that stands for an item in a key. For a pointer, that is the
// address; but for a string it is the text, and for a network address its bytes.
func keyed(v *compiler.Value) *compiler.Value {
	if v.Pointee == nil || v.Text != compiler.NoText {
		return v
	}
	if v.Format == "" {
		return bare(v)
	}
	t := *v
	size, _ := btf.Sizeof(v.Pointee) // sizes of bound values are known
	t.Type, t.Pointee, t.Load, t.Scalar, t.Casts = v.Pointee, nil, nil, nil, nil
	t.Path = partOf(v, 0, size).Path
	return &t
}

// stacksWhereCounted makes stacks belong to the return if calls are counted there:
// a stack of the entry would have to be kept until then.
func stacksWhereCounted(values []*compiler.Value, conds compiler.AllOf) {
	values = slices.AppendSeq(values, compiler.LeafValues(conds))
	ret := slices.ContainsFunc(values, func(v *compiler.Value) bool { return latest(v) == compiler.AtReturn })
	for _, v := range values {
		if ret && v.Base.Builtin == compiler.KernelStack {
			v.Side = compiler.AtReturn
		}
	}
}
