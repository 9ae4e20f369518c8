package resolve

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// after binds a value as it is when the function returns.
func (b *binder) after(e *spec.After) (operand, error) {
	if err := b.hasReturn(e, "after"); err != nil {
		return operand{}, err
	}
	o, err := b.bind(e.X)
	if err == nil {
		err = b.finish(&o, e.X)
	}
	if err != nil {
		return o, err
	}
	if why := unchangeable(&o.Value); why != "" {
		return o, b.errorf(e.Span(), "'%s' %s", e.X, why).WithHint("leave out the 'after'")
	}
	o.Value = *b.late(&o.Value)
	return o, nil
}

// hasReturn returns an error if calls of the function have no return at which
// something could be read.
func (b *binder) hasReturn(e spec.Expr, word string) error {
	if why := noReturn(b.fn); why != "" {
		return b.errorf(e.Span(), "%s %s, and '%s' reads values at return", b.subject(), why, word)
	}
	return nil
}

// noReturn returns the reason why calls of a function have no return, or "" if they
// have one.
func noReturn(fn *compiler.Function) string {
	switch {
	case fn.Tracepoint:
		return "is a tracepoint, which has no return"
	case fn.Iterator:
		return "is an iterator, which has no return"
	case neverReturns[fn.Name]:
		return "never returns"
	}
	return ""
}

// unchangeable returns why a value is the same at entry and at return, or is not
// known before the return, or "" if it may change.
func unchangeable(v *compiler.Value) string {
	if of := v.Base.Of; of != nil && len(v.Path) == 0 {
		x, y := of.X, of.Y
		switch {
		case x.Base.Number != nil:
			return unchangeable(y)
		case y.Base.Number != nil:
			return unchangeable(x)
		}
		why := unchangeable(x)
		if other := unchangeable(y); why != "" && other != "" {
			return why
		}
		return ""
	}
	_, points := btf.As[*btf.Pointer](v.Type)
	switch {
	case v.Side == compiler.AtReturn:
		return "is known at return only"
	case v.Base.Builtin == compiler.KernelStack:
		return "is where the function was called from, and no call can change it"
	case v.Base.Builtin == compiler.PID, v.Base.Builtin == compiler.TID, v.Base.Builtin == compiler.Task && len(v.Path) == 0:
		return "is the thread that makes the call, and no call can change it"
	case v.InWords() && !points, len(v.Path) > 0 && v.Path[len(v.Path)-1].Addr && !points:
		return byValue
	}
	return ""
}

// byValue is why an argument that is no pointer cannot change.
const byValue = "is passed by value, and no call can change it"

// late returns the value at return that begins with the same words of arguments as
// a value of the entry.
func (b *binder) late(v *compiler.Value) *compiler.Value {
	if v.Base.Number != nil {
		return v
	}
	c := *v
	c.Path = slices.Clone(v.Path)
	c.Side = compiler.AtReturn
	switch base := v.Base; {
	case base.Of != nil:
		of := *base.Of
		of.X, of.Y = b.late(of.X), b.late(of.Y)
		c.Base.Of = &of
	case base.Param != nil && base.Param != b.fn.Result:
		c.Base = compiler.Base{Kept: b.word(v)}
	}
	return &c
}

// word returns the word of an argument that a value begins with, the same one for
// all values.
func (b *binder) word(v *compiler.Value) *compiler.Value {
	key := fmt.Sprintf("word %d of %p", v.Base.Word, v.Base.Param)
	if w := b.values[key]; w != nil {
		return w
	}
	w := baseWord(v)
	w.Name, w.Side = v.Base.Param.Name, compiler.AtEntry
	b.values[key] = w
	return w
}

// pointerAfter refuses to compare a pointer argument at return: it is the same as at
// entry.
func (b *binder) pointerAfter(item *spec.Item, v *compiler.Value) error {
	if v.Base.Kept == nil || len(v.Path) > 0 || v.Text != compiler.NoText || item.Pred != nil && item.Pred.Const.Kind == spec.String {
		return nil
	}
	return b.errorf(item.Span(), "'%s' compares the pointer, which no call can change", item).
		WithHint("name a member, or what it points to: after(*%s)", v.Base.Kept.Name)
}

// asksOver reports whether a spec reads values of the entry again at return, so that
// one event has both sides.
func asksOver(t *spec.Trace) (found bool) {
	for _, item := range t.AllItems() {
		item.Walk(func(e spec.Expr) {
			switch e.(type) {
			case *spec.After, *spec.Diff:
				found = true
			}
		})
	}
	return found
}

// durationOf returns a place where a spec names $duration, or nil.
func durationOf(t *spec.Trace) (found spec.Expr) {
	for _, item := range t.AllItems() {
		item.Walk(func(e spec.Expr) {
			if d, ok := e.(*spec.Builtin); ok && d.Name.Name == "duration" {
				found = e
			}
		})
	}
	return found
}

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
	before := *bare(v)
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
		return byValue
	case len(v.Path) == 0, v.Path[len(v.Path)-1].Addr:
		return "is not memory that a call can change"
	case v.Base.PerCPU != 0:
		return "is another variable on each CPU, and the call can move"
	}
	return ""
}

// changedLeaf returns the condition that anything differs or, if negative is set, that
// nothing does.
func changedLeaf(v *compiler.Value, negative bool) *compiler.Leaf {
	pred := &compiler.Predicate{Text: v.Name, Op: spec.Ne}
	if negative {
		pred = negated(pred)
	}
	return &compiler.Leaf{Value: v, Pred: pred}
}

// onlyChanged returns the condition that at least one of the diffs in the list shows a
// change, or nil if the spec itself has a condition on a diff.
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

// keepCompared adds to the values that are kept from entry those that conditions compare
// with values at return.
func keepCompared(p *compiler.Probe, conds compiler.AllOf) {
	for l := range compiler.Leaves(conds) {
		if before := l.Value.Before; before != nil && !slices.Contains(p.Entry, before) {
			p.Entry = append(p.Entry, before)
		}
	}
}
