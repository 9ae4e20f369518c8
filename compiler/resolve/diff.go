package resolve

import (
	"slices"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// diff binds what differs between a value at entry and at return: the value at
// return, with the one that it is compared with.
func (b *binder) diff(e *spec.Diff, format spec.Ident) (*compiler.Value, error) {
	key := e.String() + ":" + format.Name
	if v := b.values[key]; v != nil {
		return v, nil
	}
	if err := b.hasReturn(e, "diff"); err != nil {
		return nil, err
	}
	v, err := b.value(e.X, format)
	if err != nil {
		return nil, err
	}
	name := v.Name
	if pointsTo(v) {
		v = pointedTo(v)
	}
	if why := notInMemory(v); why != "" {
		return nil, b.errorf(e.Span(), "'%s' %s", e.X, why)
	}
	before := *v.Bare()
	before.Name, before.Side, before.Hidden = name, compiler.AtEntry, true
	after := b.late(&before)
	after.Name, after.Before, after.Hidden = e.String(), &before, false
	b.values[key] = after
	return after, nil
}

// notInMemory returns why a value is not memory that a call can change, or "".
func notInMemory(v *compiler.Value) string {
	switch {
	case v.Side == compiler.AtReturn:
		return "is known at return only"
	case v.InWords() && v.Text != compiler.NoText:
		return "is a string of unknown length: name an array, or a character"
	case v.InWords():
		return "is passed by value, and no call can change it"
	case len(v.Path) == 0, v.Path[len(v.Path)-1].Addr:
		return "is not memory that a call can change"
	case v.Base.PerCPU != 0:
		return "is another variable on each CPU, and the call can move"
	}
	return ""
}

// changedLeaf returns the condition that anything differs, or that nothing does.
func changedLeaf(v *compiler.Value, negative bool) *compiler.Leaf {
	pred := &compiler.Predicate{Text: v.Name, Op: spec.Ne}
	if negative {
		pred = negated(pred)
	}
	return &compiler.Leaf{Value: v, Pred: pred}
}

// onlyChanged returns the condition that one of the diffs in the list shows
// anything. If the spec has a condition on a diff, that one decides.
func (b *builder) onlyChanged() (conds compiler.AllOf) {
	var changed compiler.AnyOf
	var asked bool
	for _, item := range b.trace.AllItems() {
		d, ok := item.Value.(*spec.Diff)
		switch {
		case !ok:
		case slices.Contains(b.trace.Items, item):
			v, _ := b.diff(d, item.Format) // it has been bound
			changed = append(changed, changedLeaf(v, false))
		default:
			asked = true
		}
	}
	switch {
	case asked || len(changed) == 0:
		return nil
	case len(changed) == 1:
		return compiler.AllOf{changed[0]}
	}
	return compiler.AllOf{changed}
}

// keepCompared adds what conditions compare with values at return to what is kept of
// the entry.
func keepCompared(p *compiler.Probe, conds compiler.AllOf) {
	for l := range compiler.Leaves(conds) {
		if before := l.Value.Before; before != nil && !slices.Contains(p.Entry, before) {
			p.Entry = append(p.Entry, before)
		}
	}
}
