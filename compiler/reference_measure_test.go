package compiler

import (
	"bytes"
	"slices"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// counted is what should be counted of calls.
type counted struct {
	calls, matched uint64
	samples        []uint64
	unread         uint64
	changes        ChangeCounts
	first          *referenceCall // that matched
}

// subject is the item that is measured: the first one without a test.
func (r *reference) subject() *spec.Item {
	items := r.trace.Items
	if i := slices.IndexFunc(items, func(it *spec.Item) bool { return it.Pred == nil }); i >= 0 {
		return items[i]
	}
	return items[0]
}

// note looks at what a measure wants of a side.
func (r *reference) note(at Side) error {
	for _, it := range append(r.list(), r.tested()...) {
		if r.side(it) != at {
			continue
		}
		c, err := r.eval(it.Value)
		if err != nil {
			return err
		}
		if c.typ.scalar() {
			r.call.numbers[it] = r.formatted(it, c)
		}
	}
	if r.measure != Changes {
		return nil
	}
	b, ok, err := r.comparable()
	r.call.compared[at] = snapshot{b, ok}
	return err
}

// snapshot is the bytes of an item on a side of a call; !ok: it could not be
// read.
type snapshot struct {
	bytes []byte
	ok    bool
}

// comparable is the memory of the subject, or what an argument points to.
func (r *reference) comparable() ([]byte, bool, error) {
	it := r.subject()
	c, err := r.eval(it.Value)
	if err != nil {
		return nil, false, err
	}
	passed, err := r.passed(it.Value)
	if err != nil {
		return nil, false, err
	}
	switch size := addressSizes[it.Format.Name]; {
	case !c.typ.scalar():
		b := slices.Clone(r.read(&c, c.typ.size))
		return b, !c.bad, nil
	case passed && c.typ.kind == cPointer && (it.Format.Name == "" || size != 0):
		if size == 0 {
			size = c.typ.to.size
		}
		target := cell{base: r.number(c).num, typ: c.typ.to}
		if n := r.number(target); r.call.target == nil && it.Format.Name == "" && c.typ.to.scalar() {
			r.call.target = &formatted{num: n.num, bad: n.bad}
		}
		b := slices.Clone(r.read(&target, size))
		return b, !target.bad, nil
	}
	f := r.formatted(it, c)
	return le(f.num), !f.bad, nil
}

// passed says whether a value is an argument, or a part of one, whatever it was
// cast to.
func (r *reference) passed(e spec.Expr) (bool, error) {
	if cast, ok := e.(*spec.Cast); ok {
		return r.passed(cast.X)
	}
	c, err := r.eval(e)
	return c.in == inWords, err
}

// known is when a call counts.
func (r *reference) known() Side {
	if _, ret, _ := r.sides(); ret || r.measure == Durations || r.measure == Changes {
		return AtReturn
	}
	return AtEntry
}

// count is what becomes of a call that has ended.
func (r *reference) count(n *counted) {
	n.calls++
	if r.verdict() != yes {
		return
	}
	n.matched++
	if n.first == nil {
		n.first = r.call
	}
	switch r.measure {
	case Durations:
		n.samples = append(n.samples, r.call.now.time-r.call.start)
	case Values:
		if f := r.call.numbers[r.listed(r.subject())]; f.bad {
			n.unread++
		} else {
			n.samples = append(n.samples, f.num)
		}
	case Changes:
		entry, ret := r.call.compared[AtEntry], r.call.compared[AtReturn]
		switch {
		case !entry.ok || !ret.ok:
			n.changes.Unread++
		case bytes.Equal(entry.bytes, ret.bytes):
			n.changes.Unchanged++
		default:
			n.changes.Changed++
		}
	}
}

// listed is the item of the list that says the same.
func (r *reference) listed(it *spec.Item) *spec.Item {
	same := func(o *spec.Item) bool {
		return o.Value.String() == it.Value.String() && o.Format.Name == it.Format.Name
	}
	return r.list()[slices.IndexFunc(r.list(), same)]
}

// numbersOf are those that the values of a name have in a call: there may be
// several with different formats.
func (r *reference) numbersOf(c *referenceCall, name string) (all []formatted) {
	for it, f := range c.numbers {
		if it.Value.String() == name {
			all = append(all, f)
		}
	}
	if c.target != nil && name == "*"+r.subject().Value.String() {
		all = append(all, *c.target)
	}
	return all
}
