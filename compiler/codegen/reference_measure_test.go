package codegen

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// counted has the expected counts of calls.
type counted struct {
	calls, matched uint64
	samples        []uint64
	faulted        uint64
	changes        compiler.ChangeCounts
	first          *referenceCall // first call that matched
	rows           map[string]*tabled
}

// subject returns the item that is measured: the first one without a predicate.
func (r *reference) subject() *spec.Item {
	items := r.trace.Items
	if i := slices.IndexFunc(items, func(it *spec.Item) bool { return it.Pred == nil }); i >= 0 {
		return items[i]
	}
	return items[0]
}

// note records what a measure needs of a side.
func (r *reference) note(at compiler.Side) error {
	for _, it := range append(r.list(), r.predicates()...) {
		if r.side(it) != at {
			continue
		}
		c, err := r.eval(it.Value)
		if err != nil {
			return err
		}
		if c.typ.scalar() || it.Format.Name == "path" {
			r.call.numbers[it] = r.formatted(it, c)
		} else if r.measure == compiler.Tables && c.typ == cStack {
			r.call.keys[it] = keyPart{text: fmt.Sprintf("%x", r.showStack(false).data)}
		} else if r.measure == compiler.Tables {
			r.call.keys[it] = r.keyOf(c)
		}
	}
	for _, it := range r.predicates() {
		with := r.with(it)
		if with == nil || r.belongs(with) != at {
			continue
		}
		if c, err := r.operandOf(with); err == nil {
			other := &spec.Item{Value: with}
			r.call.numbers[other] = r.formatted(other, c)
		}
	}
	if r.measure != compiler.Changes {
		return nil
	}
	b, ok, err := r.comparable()
	r.call.compared[at] = snapshot{b, ok}
	return err
}

// snapshot has the bytes of an item on a side of a call. If ok is false, they
// could not be read.
type snapshot struct {
	bytes []byte
	ok    bool
}

// comparable returns the memory of the subject, or the memory that an argument
// points to.
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

// passed reports whether a value is an argument, or a part of one, with or
// without casts.
func (r *reference) passed(e spec.Expr) (bool, error) {
	if cast, ok := e.(*spec.Cast); ok {
		return r.passed(cast.X)
	}
	c, err := r.eval(e)
	return c.in == inWords, err
}

// known returns the side at which a call is counted.
func (r *reference) known() compiler.Side {
	if _, ret, _ := r.sides(); ret || r.measure == compiler.Durations || r.measure == compiler.Changes {
		return compiler.AtReturn
	}
	return compiler.AtEntry
}

// count counts a call that has ended by its fate.
func (r *reference) count(n *counted) {
	n.calls++
	if r.verdict(r.conds()) != yes {
		return
	}
	n.matched++
	if n.first == nil {
		n.first = r.call
	}
	switch r.measure {
	case compiler.Tables:
		r.tabulate(n)
	case compiler.Durations:
		n.samples = append(n.samples, r.call.now.time-r.call.start)
	case compiler.Values:
		if f := r.call.numbers[r.listed(r.subject())]; f.bad {
			n.faulted++
		} else {
			n.samples = append(n.samples, f.num)
		}
	case compiler.Changes:
		entry, ret := r.call.compared[compiler.AtEntry], r.call.compared[compiler.AtReturn]
		switch {
		case !entry.ok || !ret.ok:
			n.changes.Faulted++
		case bytes.Equal(entry.bytes, ret.bytes):
			n.changes.Unchanged++
		default:
			n.changes.Changed++
		}
	}
}

// listed returns the equal item of the list.
func (r *reference) listed(it *spec.Item) *spec.Item {
	same := func(o *spec.Item) bool {
		return o.Value.String() == it.Value.String() && o.Format.Name == it.Format.Name
	}
	return r.list()[slices.IndexFunc(r.list(), same)]
}

// numbersOf returns the numbers of the values with a name in a call. There may
// be several with different formats.
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
