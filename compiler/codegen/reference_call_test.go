package codegen

import (
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// moment has the values that do not depend on the function.
type moment struct {
	pidtid   uint64
	cpu, uid uint32
	comm     string
	time     uint64
	// kstack and ustack have the frames of the stacks; "" if there is none.
	kstack, ustack string
}

// referenceCall is a call that a reference evaluates.
type referenceCall struct {
	args   [][]byte // words
	result []byte
	now    moment
	start  uint64               // time at entry
	kept   map[*spec.Item]shown // what is shown of the items
	truths map[*spec.Item]truth // results of predicates
	early  map[string]cell      // values at entry that those at return are computed from
	before map[string]shown     // values at entry that others are compared with
	soft   bool                 // whether a kernel address could not be read
	// For calls that are measured:
	numbers  map[*spec.Item]formatted   // values when they were read
	keys     map[*spec.Item]keyPart     // the same of those that are not numbers, in a key
	compared map[compiler.Side]snapshot // memory of the subject
	target   *formatted                 // the number it points to at entry, if any
}

// expected is an event that a call must have.
type expected struct {
	kind  compiler.EventKind
	items []shown
	at    moment
	start uint64 // time at entry
	frame uint64 // frame address of the call
}

// side returns the side at which an item is available.
func side(e spec.Expr) compiler.Side {
	s := compiler.AnySide
	spec.Walk(e, func(e spec.Expr) {
		switch e := e.(type) {
		case *spec.Arg:
			s = max(s, compiler.AtEntry)
		case *spec.Return, *spec.After, *spec.Diff:
			s = compiler.AtReturn
		case *spec.Builtin:
			switch name := e.Name.Name; {
			case name == "retval", name == "duration":
				s = compiler.AtReturn
			case strings.HasPrefix(name, "arg"):
				s = max(s, compiler.AtEntry)
			}
		}
	})
	return s
}

// items returns the items of the spec, or without a list all that the function
// has.
func (r *reference) items() []*spec.Item {
	if r.trace.Items != nil || r.all != nil || r.measure != compiler.NoMeasure {
		return append(r.trace.Items, r.all...)
	}
	for i, p := range r.fn.params {
		if r.fn.iterator && i == 0 {
			continue
		}
		r.all = append(r.all, &spec.Item{Value: &spec.Arg{Name: spec.Ident{Name: p.name}}})
	}
	if r.fn.result != nil {
		r.all = append(r.all, &spec.Item{Value: &spec.Return{}})
	}
	return r.all
}

// list returns the items that are shown, each once.
func (r *reference) list() []*spec.Item {
	if r.shown != nil {
		return r.shown
	}
	have := map[string]bool{}
	add := func(it *spec.Item) {
		if !have[key(it)] {
			r.shown = append(r.shown, it)
		}
		have[key(it)] = true
	}
	for _, it := range r.items() {
		add(it)
		r.addBefore(it)
		if with := r.with(it); with != nil {
			add(&spec.Item{Value: with})
		}
	}
	for _, it := range r.predicates() {
		r.addBefore(it)
	}
	return r.shown
}

// conds returns the conditions that must all hold.
func (r *reference) conds() []spec.Cond {
	var conds []spec.Cond
	for _, it := range r.trace.Items {
		if it.Pred != nil {
			conds = append(conds, it)
		}
	}
	if r.trace.Cond != nil {
		conds = append(conds, r.trace.Cond)
	}
	if changed := r.onlyChanged(); changed != nil {
		conds = append(conds, changed)
	}
	return conds
}

// sides returns which sides of a call the spec refers to, and the side at which
// values available on both are read.
func (r *reference) sides() (entry, ret bool, both compiler.Side) {
	again, free := false, false // values are read again at return; others may be read on any side
	late := map[spec.Expr]bool{}
	visit := func(e spec.Expr) {
		switch x := e.(type) {
		case *spec.After:
			again = true
			spec.Walk(x.X, func(e spec.Expr) { late[e] = true })
		case *spec.Builtin, *spec.Global:
			free = free || side(e) == compiler.AnySide && !late[e]
		}
		switch e.(type) {
		case *spec.Diff:
			entry, ret = true, true
		case *spec.Arg, *spec.Return, *spec.Builtin, *spec.After:
			s := side(e)
			if _, isEnum := r.k.enums[e.String()]; !isEnum {
				entry = entry || s == compiler.AtEntry
			}
			ret = ret || s == compiler.AtReturn
		}
	}
	for _, it := range append(r.items(), r.trace.AllItems()...) {
		it.Walk(visit)
		if with := r.with(it); with != nil {
			spec.Walk(with, visit)
		}
	}
	entry = entry || again && free
	if ret && !entry {
		return entry, ret, compiler.AtReturn
	}
	return true, ret, compiler.AtEntry
}

// side returns the side at which a reference reads an item.
func (r *reference) side(it *spec.Item) compiler.Side {
	if r.hidden[it] {
		return compiler.AtEntry
	}
	return r.belongs(it.Value)
}

// predicateSide returns the side at which a reference evaluates a predicate.
func (r *reference) predicateSide(it *spec.Item) compiler.Side {
	s := r.side(it)
	if with := r.with(it); with != nil {
		s = max(s, r.belongs(with))
	}
	return s
}

// joins reports whether an item is computed from what belongs to the entry and from
// what belongs to the return.
func (r *reference) joins(it *spec.Item) bool {
	var entry, ret bool
	it.Walk(func(e spec.Expr) {
		switch e.(type) {
		case *spec.Arg, *spec.Return, *spec.Builtin, *spec.Global, *spec.After, *spec.Diff:
			if _, isEnum := r.k.enums[e.String()]; !isEnum {
				entry = entry || r.belongs(e) == compiler.AtEntry
				ret = ret || r.belongs(e) == compiler.AtReturn
			}
		}
	})
	return entry && ret
}

// paired reports whether one event has both sides.
func (r *reference) paired() bool {
	entry, ret, _ := r.sides()
	joins := len(r.conds()) > 0
	for _, it := range r.list() {
		joins = joins || r.joins(&spec.Item{Value: it.Value})
	}
	return entry && ret && joins
}

// look evaluates everything that belongs to a side.
func (r *reference) look(at compiler.Side) (err error) {
	for _, it := range r.list() {
		if r.side(it) != at {
			continue
		}
		if r.call.kept[it], err = r.show(it); err != nil {
			return err
		}
		if r.hidden[it] {
			r.call.before[key(it)] = r.call.kept[it]
		}
	}
	for _, it := range r.predicates() {
		if r.predicateSide(it) != at {
			continue
		}
		if r.call.truths[it], err = r.holds(it); err != nil {
			return err
		}
	}
	return nil
}

// predicates returns the items that are predicates of the conditions.
func (r *reference) predicates() []*spec.Item {
	var items []*spec.Item
	for _, t := range r.conds() {
		cond(t, func(it *spec.Item) truth { items = append(items, it); return no })
	}
	return items
}

// enter returns the events of a call's entry.
func (r *reference) enter(c *referenceCall) ([]expected, error) {
	r.call = c
	c.before = map[string]shown{}
	c.kept, c.truths, c.start = map[*spec.Item]shown{}, map[*spec.Item]truth{}, c.now.time
	r.late = false
	if err := r.lookEarly(); err != nil {
		return nil, err
	}
	if err := r.look(compiler.AtEntry); err != nil {
		return nil, err
	}
	entry, _, _ := r.sides()
	if entry && !r.paired() && r.verdict(r.conds()) == yes {
		return []expected{r.event(compiler.EntryEvent, compiler.AtEntry)}, nil
	}
	return nil, nil
}

// leave returns the events of a call's return.
func (r *reference) leave(c *referenceCall) ([]expected, error) {
	r.call = c
	r.late = true
	_, ret, _ := r.sides()
	if !ret {
		return nil, nil
	}
	if err := r.look(compiler.AtReturn); err != nil {
		return nil, err
	}
	switch {
	case r.verdict(r.conds()) != yes:
		return nil, nil
	case r.paired():
		e := r.event(compiler.CallEvent, compiler.AtEntry)
		e.items = append(e.items, r.event(compiler.CallEvent, compiler.AtReturn).items...)
		return []expected{e}, nil
	}
	return []expected{r.event(compiler.ReturnEvent, compiler.AtReturn)}, nil
}

// verdict returns whether all of these conditions hold.
func (r *reference) verdict(conds []spec.Cond) truth {
	v := yes
	for _, t := range conds {
		v = min(v, cond(t, func(it *spec.Item) truth { return r.call.truths[it] }))
	}
	return v
}

// event returns the event with the items of a side.
func (r *reference) event(kind compiler.EventKind, at compiler.Side) expected {
	e := expected{kind: kind, at: r.call.now, start: r.call.start}
	for _, it := range r.list() {
		if r.side(it) == at {
			e.items = append(e.items, r.call.kept[it])
		}
	}
	return e
}

// unreadable returns how often, at least and at most, the call may be counted as
// unreadable because of these conditions.
func (r *reference) unreadable(conds []spec.Cond, trampoline bool) (least, most int) {
	switch v := r.verdict(conds); {
	case v == yes || r.inOrder(conds) != unknown:
		return 0, 0
	case v == unknown && !(trampoline && r.call.soft):
		return 1, 1
	}
	return 0, 1
}

// inOrder evaluates conditions that must all hold as far as programs have to: those of the
// entry before those of the return, of each side those that read no memory before the
// others, and otherwise from left to right, up to the first that does not hold.
func (r *reference) inOrder(conds []spec.Cond) truth {
	for _, at := range []compiler.Side{compiler.AtEntry, compiler.AtReturn} {
		for _, reads := range []bool{false, true} {
			for _, whole := range conds {
				for _, c := range conjuncts(whole) {
					if v := r.anyInOrder(c); v != yes && r.condSide(c) == at && r.readsMemory(c) == reads {
						return v
					}
				}
			}
		}
	}
	return yes
}

// readsMemory reports whether a condition is about more than what is passed and what the
// kernel knows of the thread.
func (r *reference) readsMemory(c spec.Cond) (reads bool) {
	cond(c, func(it *spec.Item) truth {
		look := func(e spec.Expr) {
			switch e := e.(type) {
			case *spec.Arg, *spec.Return, *spec.Number, *spec.Binary, *spec.Cast:
			case *spec.Builtin:
				reads = reads || e.Name.Name == "ppid"
			default:
				reads = true
			}
		}
		it.Walk(look)
		if with := r.with(it); with != nil {
			spec.Walk(with, look)
		}
		isString := it.Pred != nil && it.Pred.Const.Kind == spec.String
		reads = reads || isString && it.Value.String() != "$comm"
		return no
	})
	return reads
}

// anyInOrder evaluates a condition that is no "and".
func (r *reference) anyInOrder(c spec.Cond) truth {
	switch c := c.(type) {
	case *spec.Or:
		return max(r.inOrder([]spec.Cond{c.X}), r.inOrder([]spec.Cond{c.Y}))
	case *spec.Not:
		if x, ok := c.X.(*spec.And); ok {
			return max(r.inOrder([]spec.Cond{&spec.Not{X: x.X}}), r.inOrder([]spec.Cond{&spec.Not{X: x.Y}}))
		}
	}
	return cond(c, func(it *spec.Item) truth { return r.call.truths[it] })
}

// condSide returns the side at which a reference evaluates a condition.
func (r *reference) condSide(c spec.Cond) compiler.Side {
	s := compiler.AtEntry
	cond(c, func(it *spec.Item) truth { s = max(s, r.predicateSide(it)); return no })
	return s
}
