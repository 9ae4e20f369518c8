package replay

import (
	"bytes"
	"slices"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// filter is a condition over values that were recorded. Values are those of its text:
// what the spec recorded as file->f_flags, the condition calls the same.
type filter struct {
	trace *spec.Trace
	arch  *compiler.Arch
	bound map[*compiler.EventType]condition
	names []string // of all values that could be asked for
	all   []*predicate
	in    render.Containers // of cgroups
}

// predicate is a predicate of the condition, and whether the values of events fit it.
type predicate struct {
	item *spec.Item
	fits bool  // at least one value of an event fits
	err  error // about the first value of its name that does not fit
}

// condition decides about the values of an event or, if ev is nil, of the key of a row. They
// have the order of those that it was bound to. ok is false if a value could not be read.
type condition func(values []runtime.Value, ev *runtime.Event) (holds, ok bool)

// newFilter binds a condition to events, each with records or the rows of a table.
func newFilter(trace *spec.Trace, events []*compiler.EventType, arch *compiler.Arch, in render.Containers) (*filter, error) {
	f := &filter{trace: trace, arch: arch, bound: map[*compiler.EventType]condition{}, in: in}
	records := false
	for _, ev := range events {
		values := ev.Probe.Key
		if ev.Probe.Measure == compiler.NoMeasure {
			values, records = slices.Concat(ev.Items, ofHeader), true
		}
		t, err := f.bind(trace.Cond, values, ev.Probe.Func)
		if err != nil {
			return nil, err
		}
		f.bound[ev] = t
	}
	return f, f.misfit(records)
}

// ofHeader are the values that every record has.
var ofHeader = []*compiler.Value{
	headerValue("$comm", compiler.Comm, &btf.Array{Type: &btf.Int{Name: "char", Size: 1, Encoding: btf.Char}, Nelems: 16}, 0),
	headerValue("$pid", compiler.PID, &btf.Int{Name: "u32", Size: 4}, 4),
	headerValue("$tid", compiler.TID, &btf.Int{Name: "u32", Size: 4}, 4),
	headerValue("$cpu", compiler.CPU, &btf.Int{Name: "u32", Size: 4}, 4),
}

func headerValue(name string, b compiler.Builtin, t btf.Type, size int) *compiler.Value {
	v := &compiler.Value{Name: name, Type: t, Base: compiler.Base{Builtin: b}}
	if size > 0 {
		v.Scalar = &compiler.Scalar{Size: size}
	}
	return v
}

// bind binds a condition to values. A comparison of a value that is not among them does
// not hold.
func (f *filter) bind(c spec.Cond, values []*compiler.Value, fn *compiler.Function) (condition, error) {
	var parts []spec.Cond
	var all []condition
	when, then := true, true // if a part is the first, the whole is the second
	switch c := c.(type) {
	case *spec.Not:
		parts, then = []spec.Cond{c.X}, false
	case *spec.And:
		parts, when, then = []spec.Cond{c.X, c.Y}, false, false
	case *spec.Or:
		parts = []spec.Cond{c.X, c.Y}
	case *spec.Item:
		var err error
		if all, err = f.leaf(c, values, fn); err != nil {
			return nil, err
		}
	}
	for _, part := range parts {
		x, err := f.bind(part, values, fn)
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	// A part is asked unless one before it decides. It may do so where that cannot be told
	// of the one before.
	return func(v []runtime.Value, ev *runtime.Event) (bool, bool) {
		told := all != nil
		for _, c := range all {
			holds, ok := c(v, ev)
			if ok && holds == when {
				return then, true
			}
			told = told && ok
		}
		return !then, told
	}, nil
}

// predicate returns the predicate of an item of the condition, a new one for a new item.
func (f *filter) predicate(item *spec.Item) *predicate {
	for _, p := range f.all {
		if p.item == item {
			return p
		}
	}
	p := &predicate{item: item}
	f.all = append(f.all, p)
	return p
}

// leaf binds an item of the condition to the values of its name: it holds if it does for one.
func (f *filter) leaf(item *spec.Item, values []*compiler.Value, fn *compiler.Function) ([]condition, error) {
	if p := item.Pred; p != nil && p.With != nil {
		return nil, spec.Errorf(f.trace.Text, p.With.Span(), "a recorded value is compared with a constant, and '%s' is none", p.With)
	}
	known := f.predicate(item)
	name, format := item.Value.String(), item.Format.Name
	// The two points of a span may have values of the same name, and so may one point, in
	// several formats. Those of the item's format are asked, and of these, or else of all,
	// those that the predicate fits.
	var best []condition
	rank := 0
	for at, v := range values {
		if f.names = append(f.names, v.Name); v.Name != name {
			continue
		}
		c, err := f.value(item, values, at, fn)
		r := 1
		if err == nil {
			r = 2
		} else if known.err == nil {
			known.err = err
		}
		if format != "" && v.Format == format {
			r += 2
		}
		if r > rank {
			rank, best = r, nil
		}
		if r == rank {
			best = append(best, c)
		}
	}
	known.fits = known.fits || rank == 2 || rank == 4
	return best, nil
}

// value binds an item of the condition to one value. With an error, which is about a value
// that the predicate does not fit, there is a condition, too.
func (f *filter) value(item *spec.Item, values []*compiler.Value, at int, fn *compiler.Function) (condition, error) {
	asked := values[at]
	isContainer := asked.Format == compiler.ContainerFormat
	if isContainer {
		asked = containerName
	}
	pred, err := resolve.Recorded(f.trace, item, asked, fn, f.arch)
	return func(v []runtime.Value, ev *runtime.Event) (bool, bool) {
		switch {
		case err != nil && at >= len(v):
			return false, false
		case err != nil:
			return compare(item.Pred, &v[at])
		case isContainer:
			return f.ofContainer(pred, &v[at])
		case at >= len(v):
			return ofEvent(pred, values[at].Base.Builtin, ev), true
		}
		return of(pred, &v[at])
	}, err
}

// containerName is how the name of a container is compared.
var containerName = &compiler.Value{Name: "$container", Text: compiler.KernelText, Type: &btf.Pointer{Target: &btf.Int{Name: "char", Size: 1, Encoding: btf.Char}}}

// ofContainer decides about the container of a cgroup, by what is shown of it or by its
// whole id. A cgroup that is in no container has a container without a name.
func (f *filter) ofContainer(p *compiler.Predicate, v *runtime.Value) (holds, ok bool) {
	if v.Fault != compiler.NoFault {
		return false, false
	}
	c, _ := f.in.Of(v.Uint64())
	same := p.Pattern.Matches(c.String()) || c.ID != "" && p.Pattern.Matches(c.ID)
	return same != (p.Op == spec.Ne || p.Not), true
}

// compare decides about a number that a predicate does not fit, such as one that is
// never as large as the constant. No comparison holds for a value that is not a number.
func compare(p *spec.Predicate, v *runtime.Value) (holds, ok bool) {
	if p == nil || p.Op > spec.Ge || p.Const.Kind != spec.Integer || v.Scalar == nil || v.Pointee != nil || v.Fault != compiler.NoFault {
		return false, false
	}
	n, c := runtime.NewUint(v.Uint64()), runtime.NewUint(p.Const.Abs)
	if v.Scalar.Signed {
		n = runtime.NewInt(v.Int64())
	}
	if p.Const.Neg {
		c = runtime.Int{}.Sub(c)
	}
	return p.Op.Holds(n.Cmp(c)), true
}

// of reports whether a predicate holds for a value, and whether that can be told.
func of(p *compiler.Predicate, v *runtime.Value) (holds, ok bool) {
	switch {
	case v.Pointee != nil && p.Pattern == nil:
		return p.Holds(v.Addr), v.Fault != compiler.ValueFault
	case v.Fault != compiler.NoFault:
		return false, false
	case p.Pattern != nil:
		return ofText(p, v.Data), true
	case v.Scalar.Signed:
		return p.Holds(uint64(v.Int64())), true
	}
	return p.Holds(v.Uint64()), true
}

func ofText(p *compiler.Predicate, data []byte) bool {
	text, _, _ := bytes.Cut(data, []byte{0})
	return p.Pattern.Matches(string(text)) != (p.Op == spec.Ne || p.Not)
}

// ofEvent reports whether a predicate holds for what every record has.
func ofEvent(p *compiler.Predicate, b compiler.Builtin, ev *runtime.Event) bool {
	switch b {
	case compiler.Comm:
		return ofText(p, ev.Comm)
	case compiler.PID:
		return p.Holds(uint64(ev.PID))
	case compiler.TID:
		return p.Holds(uint64(ev.TID))
	}
	return p.Holds(uint64(ev.CPU))
}

// misfit returns an error for a predicate that fits no event. records reports whether
// there are any with records, and not only tables.
func (f *filter) misfit(records bool) error {
	for _, p := range f.all {
		if p.err == nil && !p.fits {
			return f.unknown(p.item.Value, records)
		}
		if !p.fits {
			return p.err
		}
	}
	return nil
}

// unknown returns the error for a value that nothing has.
func (f *filter) unknown(value spec.Expr, records bool) error {
	what, hint := "record", "a condition can have the values that were recorded, and $comm, $pid, $tid and $cpu"
	if !records {
		what, hint = "row of a table", "a condition can have what the rows were counted by"
	}
	err := spec.Errorf(f.trace.Text, value.Span(), "no %s has '%s'", what, value)
	if near, ok := spec.Nearest(value.String(), slices.Values(f.names)); ok {
		return err.WithMeant("%s", near)
	}
	return err.WithHint("%s", hint)
}

// rows returns the rows of a table of events that are to be shown. Those of a glob have the
// values of their own function.
func (f *filter) rows(all []runtime.Row, events []*compiler.EventType) []runtime.Row {
	of := map[string]*compiler.EventType{"": events[0]}
	for _, ev := range events {
		of[ev.Probe.Func.Name] = ev
	}
	return slices.DeleteFunc(slices.Clone(all), func(r runtime.Row) bool {
		return !f.holds(of[r.Func], r.Key, nil)
	})
}

// holds reports whether the condition holds. It does not for events that it is not bound to.
func (f *filter) holds(of *compiler.EventType, values []runtime.Value, ev *runtime.Event) bool {
	t := f.bound[of]
	if t == nil {
		return false
	}
	holds, ok := t(values, ev)
	return holds && ok
}
