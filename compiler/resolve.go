package compiler

import (
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// Probe is a spec bound to a kernel: the function, the values to record and
// every decision about how.
type Probe struct {
	Trace  *spec.Trace
	Func   *Function
	Attach Attach
	Entry  []*Item // recorded as they are at entry, in the order of the spec
	Return []*Item // recorded at return
	// Paired: one event at return carries both sides, because a predicate
	// joins them.
	Paired bool
	// Stash: entry values must be kept from entry until return. A paired
	// fexit program needs none if it finds them all in its own arguments.
	Stash bool
	// OnEntry and OnReturn are the sides that make an event of their own.
	OnEntry, OnReturn bool
}

// Item is a value to record with the predicates on it.
type Item struct {
	Value *Value
	Preds []*Predicate
}

// Resolve binds a spec to a target and decides how to trace it. An error that
// the spec is to blame for is a [*spec.Error].
func Resolve(trace *spec.Trace, target *Target) (*Probe, error) {
	fn, err := FindFunction(trace, target)
	if err != nil {
		return nil, err
	}
	p := &Probe{Trace: trace, Func: fn}
	if trace.Items == nil {
		err = p.recordAll()
	} else {
		err = p.recordItems()
	}
	if err != nil {
		return nil, err
	}
	p.Paired = len(p.Entry) > 0 && len(p.Return) > 0 && p.hasPredicates()
	p.OnEntry = !p.Paired && (len(p.Entry) > 0 || len(p.Return) == 0)
	p.OnReturn = p.Paired || len(p.Return) > 0
	p.Attach = chooseAttach(p, target.Features)
	p.Stash = p.Paired && !(p.Attach.Return == Fexit && p.entryInRegisters())
	return p, nil
}

// recordAll records every argument, and the return value if there is one.
func (p *Probe) recordAll() error {
	var exprs []spec.Expr
	for _, param := range p.Func.Params {
		exprs = append(exprs, &spec.Arg{Name: spec.Ident{Name: param.Name, At: p.Trace.Func.At}})
	}
	if p.Func.Result != nil && !neverReturns[p.Func.Name] {
		exprs = append(exprs, &spec.Return{At: p.Trace.Func.At})
	}
	for _, e := range exprs {
		if err := p.record(&spec.Item{Value: e}); err != nil {
			return err
		}
	}
	return nil
}

func (p *Probe) recordItems() error {
	for _, item := range p.Trace.Items {
		if err := p.record(item); err != nil {
			return err
		}
	}
	return nil
}

// record adds an item. A value that is named again is recorded once and gets
// the further predicate.
func (p *Probe) record(item *spec.Item) error {
	side := &p.Entry
	if atReturn(item.Value) {
		side = &p.Return
	}
	value, err := resolveValue(p.Trace, p.Func, item.Value)
	if err != nil {
		return err
	}
	it := find(*side, value.Name)
	if it == nil {
		it = &Item{Value: value}
		*side = append(*side, it)
	}
	if item.Pred == nil {
		return nil
	}
	pred, err := resolvePredicate(p.Trace, item, it.Value)
	if err != nil {
		return err
	}
	it.Preds = append(it.Preds, pred)
	return nil
}

func find(items []*Item, name string) *Item {
	for _, it := range items {
		if it.Value.Name == name {
			return it
		}
	}
	return nil
}

// atReturn says whether an expression is of the return value.
func atReturn(e spec.Expr) bool {
	switch e := e.(type) {
	case *spec.Return:
		return true
	case *spec.Member:
		return atReturn(e.X)
	}
	return false
}

func (p *Probe) hasPredicates() bool {
	for _, items := range [][]*Item{p.Entry, p.Return} {
		for _, it := range items {
			if len(it.Preds) > 0 {
				return true
			}
		}
	}
	return false
}

// entryInRegisters says whether every entry value is an argument word, with no
// memory to read.
func (p *Probe) entryInRegisters() bool {
	for _, it := range p.Entry {
		if len(it.Value.Path) > 0 || it.Value.Pointee != nil {
			return false
		}
	}
	return true
}
