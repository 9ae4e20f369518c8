package replay

import (
	"bytes"
	"slices"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime"
)

// filter is a condition over values that were recorded. Values are those of its text:
// what the spec recorded as file->f_flags, the condition calls the same.
type filter struct {
	trace *spec.Trace
	arch  *compiler.Arch
	bound map[*compiler.EventType]test
	names []string // of all values that could be asked for
	known map[*spec.Item]bool
}

// test decides about values in the order of those that it was bound to, of an event or,
// if that is nil, of the key of a row. ok is false if a value could not be read.
type test func(values []runtime.Value, ev *runtime.Event) (holds, ok bool)

// newFilter binds a condition to all events and tables of a unit.
func newFilter(trace *spec.Trace, unit *compiler.Unit, arch *compiler.Arch) (*filter, error) {
	f := &filter{trace: trace, arch: arch, bound: map[*compiler.EventType]test{}, known: map[*spec.Item]bool{}}
	for _, ev := range unit.Events {
		values := slices.Concat(ev.Items, ofHeader)
		if ev.Probe.Measure != compiler.NoMeasure {
			values = ev.Probe.Key
		}
		t, err := f.bind(trace.Cond, values, ev.Probe.Func)
		if err != nil {
			return nil, err
		}
		f.bound[ev] = t
	}
	return f, f.unknown(trace.Cond)
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

// bind binds a condition to values. A value that is not among them decides for itself:
// what needs it does not hold.
func (f *filter) bind(c spec.Cond, values []*compiler.Value, fn *compiler.Function) (test, error) {
	switch c := c.(type) {
	case *spec.Not:
		x, err := f.bind(c.X, values, fn)
		return func(v []runtime.Value, ev *runtime.Event) (bool, bool) {
			holds, ok := x(v, ev)
			return !holds, ok
		}, err
	case *spec.And:
		return f.both(c.X, c.Y, false, values, fn)
	case *spec.Or:
		return f.both(c.X, c.Y, true, values, fn)
	}
	return f.leaf(c.(*spec.Item), values, fn)
}

// both binds && or ||: the second condition is asked unless the first one decides.
func (f *filter) both(first, second spec.Cond, decides bool, values []*compiler.Value, fn *compiler.Function) (test, error) {
	x, err := f.bind(first, values, fn)
	if err != nil {
		return nil, err
	}
	y, err := f.bind(second, values, fn)
	return func(v []runtime.Value, ev *runtime.Event) (bool, bool) {
		if holds, ok := x(v, ev); !ok || holds == decides {
			return holds, ok
		}
		return y(v, ev)
	}, err
}

func (f *filter) leaf(item *spec.Item, values []*compiler.Value, fn *compiler.Function) (test, error) {
	if p := item.Pred; p != nil && p.With != nil {
		return nil, spec.Errorf(f.trace.Text, p.With.Span(), "a recorded value is compared with a constant, and '%s' is none", p.With)
	}
	name := item.Value.String()
	at := slices.IndexFunc(values, func(v *compiler.Value) bool { return v.Name == name })
	if at < 0 {
		for _, v := range values {
			f.names = append(f.names, v.Name)
		}
		return func([]runtime.Value, *runtime.Event) (bool, bool) { return false, false }, nil
	}
	f.known[item] = true
	pred, err := resolve.Recorded(f.trace, item, values[at], fn, f.arch)
	if err != nil {
		return nil, err
	}
	return func(v []runtime.Value, ev *runtime.Event) (bool, bool) {
		if at >= len(v) {
			return ofEvent(pred, values[at].Base.Builtin, ev), true
		}
		return of(pred, &v[at])
	}, nil
}

// of decides about a value.
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

// ofEvent decides about what every record has.
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

// unknown returns an error for a value that no record has.
func (f *filter) unknown(c spec.Cond) error {
	switch c := c.(type) {
	case *spec.Not:
		return f.unknown(c.X)
	case *spec.And:
		return f.firstUnknown(c.X, c.Y)
	case *spec.Or:
		return f.firstUnknown(c.X, c.Y)
	}
	item := c.(*spec.Item)
	if f.known[item] {
		return nil
	}
	err := spec.Errorf(f.trace.Text, item.Value.Span(), "no record has '%s'", item.Value)
	if near, ok := spec.Nearest(item.Value.String(), slices.Values(f.names)); ok {
		return err.WithHint("did you mean '%s'?", near)
	}
	return err.WithHint("a condition can have the values that were recorded, and $comm, $pid, $tid and $cpu")
}

func (f *filter) firstUnknown(x, y spec.Cond) error {
	if err := f.unknown(x); err != nil {
		return err
	}
	return f.unknown(y)
}

// shows reports whether an event is to be shown.
func (f *filter) shows(ev *runtime.Event) bool {
	holds, ok := f.bound[ev.EventType](ev.Values, ev)
	return holds && ok
}

// rows returns the rows of a table of an event that are to be shown.
func (f *filter) rows(all []runtime.Row, ev *compiler.EventType) []runtime.Row {
	return slices.DeleteFunc(slices.Clone(all), func(r runtime.Row) bool {
		holds, ok := f.bound[ev](r.Key, nil)
		return !holds || !ok
	})
}
