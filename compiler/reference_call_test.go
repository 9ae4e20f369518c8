package compiler

import (
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// moment is what does not depend on the function.
type moment struct {
	pidtid   uint64
	cpu, uid uint32
	comm     string
	time     uint64
}

// referenceCall is a call that a reference follows.
type referenceCall struct {
	args   [][]byte // words
	result []byte
	now    moment
	start  uint64               // time at entry
	kept   map[*spec.Item]shown // as at entry
	tested map[*spec.Item]truth // at entry
	soft   bool                 // a kernel address could not be read
	// Of calls that are measured:
	numbers  map[*spec.Item]formatted // as they were when they were looked at
	compared map[Side]snapshot        // of the subject
	target   *formatted               // what it points to at entry, if that is a number
}

// expected is an event that a call must have.
type expected struct {
	kind  EventKind
	items []shown
	at    moment
	start uint64 // the time at entry
	frame uint64 // where the call is
}

// side is when an item can be known.
func side(e spec.Expr) Side {
	s := AnySide
	spec.Walk(e, func(e spec.Expr) {
		switch e := e.(type) {
		case *spec.Arg:
			s = AtEntry
		case *spec.Return:
			s = AtReturn
		case *spec.Builtin:
			switch name := e.Name.Name; {
			case name == "retval", name == "duration":
				s = AtReturn
			case strings.HasPrefix(name, "arg"):
				s = AtEntry
			}
		}
	})
	return s
}

// items are those of the spec; without a list, all that the function has.
func (r *reference) items() []*spec.Item {
	if r.trace.Items != nil || r.all != nil || r.measure != NoMeasure {
		return append(r.trace.Items, r.all...)
	}
	for _, p := range r.fn.params {
		r.all = append(r.all, &spec.Item{Value: &spec.Arg{Name: spec.Ident{Name: p.name}}})
	}
	if r.fn.result != nil {
		r.all = append(r.all, &spec.Item{Value: &spec.Return{}})
	}
	return r.all
}

// list is the items that are shown, each once.
func (r *reference) list() []*spec.Item {
	var list []*spec.Item
	have := map[string]bool{}
	for _, it := range r.items() {
		key := it.Value.String() + ":" + it.Format.Name
		if !have[key] {
			list = append(list, it)
		}
		have[key] = true
	}
	return list
}

// tests are the conditions that must all hold.
func (r *reference) tests() []spec.Cond {
	var tests []spec.Cond
	for _, it := range r.trace.Items {
		if it.Pred != nil {
			tests = append(tests, it)
		}
	}
	if r.trace.Cond != nil {
		tests = append(tests, r.trace.Cond)
	}
	return tests
}

// sides says which sides of a call the spec is about, and when to look at what
// both have.
func (r *reference) sides() (entry, ret bool, both Side) {
	for _, it := range append(r.items(), r.trace.AllItems()...) {
		s := side(it.Value)
		entry = entry || s == AtEntry
		ret = ret || s == AtReturn
	}
	if ret && !entry {
		return entry, ret, AtReturn
	}
	return true, ret, AtEntry
}

// side is when a reference looks at an item.
func (r *reference) side(it *spec.Item) Side {
	if s := side(it.Value); s != AnySide {
		return s
	}
	_, _, both := r.sides()
	return both
}

// look evaluates everything that belongs to a side.
func (r *reference) look(at Side) (err error) {
	for _, it := range r.list() {
		if r.side(it) != at {
			continue
		}
		if r.call.kept[it], err = r.show(it); err != nil {
			return err
		}
	}
	for _, it := range r.tested() {
		if r.side(it) != at {
			continue
		}
		if r.call.tested[it], err = r.test(it); err != nil {
			return err
		}
	}
	return nil
}

// tested are the items with a test.
func (r *reference) tested() []*spec.Item {
	var items []*spec.Item
	for _, t := range r.tests() {
		cond(t, func(it *spec.Item) truth { items = append(items, it); return no })
	}
	return items
}

// enter is the events of a call's entry.
func (r *reference) enter(c *referenceCall) ([]expected, error) {
	r.call = c
	c.kept, c.tested, c.start = map[*spec.Item]shown{}, map[*spec.Item]truth{}, c.now.time
	if err := r.look(AtEntry); err != nil {
		return nil, err
	}
	entry, ret, _ := r.sides()
	if entry && !(ret && len(r.tests()) > 0) && r.verdict() == yes {
		return []expected{r.event(EntryEvent, AtEntry)}, nil
	}
	return nil, nil
}

// leave is the events of a call's return.
func (r *reference) leave(c *referenceCall) ([]expected, error) {
	r.call = c
	entry, ret, _ := r.sides()
	if !ret {
		return nil, nil
	}
	if err := r.look(AtReturn); err != nil {
		return nil, err
	}
	switch {
	case r.verdict() != yes:
		return nil, nil
	case entry && len(r.tests()) > 0:
		e := r.event(CallEvent, AtEntry)
		e.items = append(e.items, r.event(CallEvent, AtReturn).items...)
		return []expected{e}, nil
	}
	return []expected{r.event(ReturnEvent, AtReturn)}, nil
}

// verdict is whether all tests hold.
func (r *reference) verdict() truth {
	v := yes
	for _, t := range r.tests() {
		v = min(v, cond(t, func(it *spec.Item) truth { return r.call.tested[it] }))
	}
	return v
}

// event is the items of a side.
func (r *reference) event(kind EventKind, at Side) expected {
	e := expected{kind: kind, at: r.call.now, start: r.call.start}
	for _, it := range r.list() {
		if r.side(it) == at {
			e.items = append(e.items, r.call.kept[it])
		}
	}
	return e
}

// unreadable is how often the call counts as one that could not be judged:
// least and most.
func (r *reference) unreadable(trampoline bool) (least, most int) {
	met := false
	for _, v := range r.call.tested {
		met = met || v == unknown
	}
	switch v := r.verdict(); {
	case v == yes || !met:
		return 0, 0
	case v == unknown && !(trampoline && r.call.soft):
		return 1, 1
	}
	return 0, 1
}
