package codegen

import (
	"bytes"
	"slices"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// comparedIn returns the value that a diff compares: of an argument that is a pointer,
// what it points to.
func (r *reference) comparedIn(d *spec.Diff) spec.Expr {
	if c, err := r.eval(d.X); err == nil && c.in == inWords && c.typ.kind == cPointer {
		return &spec.Deref{X: d.X}
	}
	return d.X
}

// addBefore adds the value at entry that a diff compares with to the items that are
// recorded.
func (r *reference) addBefore(it *spec.Item) {
	d, ok := it.Value.(*spec.Diff)
	if !ok {
		return
	}
	before := &spec.Item{Value: r.comparedIn(d), Format: it.Format}
	for hidden := range r.hidden {
		if key(hidden) == key(before) {
			return
		}
	}
	if r.hidden == nil {
		r.hidden = map[*spec.Item]bool{}
	}
	r.hidden[before] = true
	r.shown = append(r.shown, before)
}

// onlyChanged returns the condition that one of the diffs in the list differs, or nil
// if there is none, or if the spec has a condition on a diff.
func (r *reference) onlyChanged() spec.Cond {
	if r.changed != nil {
		return r.changed
	}
	var changed spec.Cond
	for _, it := range r.trace.AllItems() {
		if _, ok := it.Value.(*spec.Diff); !ok {
			continue
		}
		switch of := (&spec.Item{Value: it.Value, Format: it.Format}); {
		case !slices.Contains(r.trace.Items, it):
			return nil
		case changed == nil:
			changed = of
		default:
			changed = &spec.Or{X: changed, Y: of}
		}
	}
	r.changed = changed
	return changed
}

// diffHolds returns whether a value differs from what it was at entry.
func (r *reference) diffHolds(it *spec.Item, d *spec.Diff) (truth, error) {
	now, err := r.show(it)
	if err != nil {
		return no, err
	}
	before := r.call.before[key(&spec.Item{Value: r.comparedIn(d), Format: it.Format})]
	for _, s := range []shown{now, before} {
		if s.fault != compiler.NoFault {
			r.call.soft = r.call.soft || int64(s.head) < 0
			return unknown, nil
		}
	}
	return truthOf(now.head != before.head || !bytes.Equal(now.data, before.data)), nil
}
