package compiler

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// Probe is a spec bound to a kernel: the function, the values to record and
// every decision about how.
type Probe struct {
	Trace  *spec.Trace
	Func   *Function
	Attach Attach
	Entry  []*Value // recorded as they are at entry, in the order of the spec
	Return []*Value // recorded at return
	// EntryTests and ReturnTests are what must hold for an event, by when it
	// can be known.
	EntryTests, ReturnTests []Test
	// Flags are the parts of return tests that are tested at entry.
	Flags []*Flag
	// Paired: one event at return carries both sides, because a predicate
	// joins them.
	Paired bool
	// Timed: the time at entry is wanted at return.
	Timed bool
	// Stash: something must be kept from entry until return. A paired fexit
	// program needs nothing kept if it finds it all in its own arguments.
	Stash bool
	// OnEntry and OnReturn are the sides that make an event of their own.
	OnEntry, OnReturn bool
	// OfGlob: the function is one of those that a glob means.
	OfGlob bool
	// Chain is the place of the probe in a stack; nil: it stands alone.
	Chain *Chain
}

// Wishes is what a user asks for besides the specs.
type Wishes struct {
	Attach Kind // the kind to attach by, which names the entry side; "": the best
	Stack  bool // the traces are a call chain, outermost first
}

// Plan is a set of specs bound to a kernel.
type Plan struct {
	Probes []*Probe
	// LeftOut counts the functions of a glob that are not traced, by reason.
	LeftOut map[string]int
	// Notes are sentences for the user on what may surprise.
	Notes []string
}

// Resolve binds one spec to a target and decides how to trace it. An error
// that the spec is to blame for is a [*spec.Error].
func Resolve(trace *spec.Trace, target *Target) (*Probe, error) {
	plan, err := ResolveAll([]*spec.Trace{trace}, target, Wishes{})
	if err != nil {
		return nil, err
	}
	return plan.Probes[0], nil
}

// ResolveAll binds all traces and reports every one that does not fit the
// kernel.
func ResolveAll(traces []*spec.Trace, target *Target, w Wishes) (*Plan, error) {
	plan := &Plan{LeftOut: map[string]int{}}
	var errs []error
	for _, t := range traces {
		errs = append(errs, plan.add(t, target, w))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if w.Stack {
		if err := plan.chain(target); err != nil {
			return nil, err
		}
	}
	functions := map[string]int{}
	for _, p := range plan.Probes {
		functions[p.Func.Symbol] += p.sides()
	}
	decided := plan.Probes[:0]
	for _, p := range plan.Probes {
		crowd := crowd{functions: len(functions), programs: functions[p.Func.Symbol]}
		switch err := p.decide(target.Features, w.Attach, crowd); {
		case err == nil:
			decided = append(decided, p)
		case p.OfGlob:
			plan.leaveOut(p.Func.Name, err.Error())
		default:
			errs = append(errs, err)
		}
	}
	plan.Probes = decided
	if len(decided) == 0 && len(errs) == 0 {
		errs = append(errs, fmt.Errorf("none of the functions can be traced: %s", commonest(plan.LeftOut)))
	}
	return plan, errors.Join(errs...)
}

// leaveOut counts a function of a glob that cannot be traced.
func (plan *Plan) leaveOut(function, reason string) {
	plan.LeftOut[strings.ReplaceAll(reason, function, "it")]++
}

// add binds a trace, or all the functions that its glob means.
func (plan *Plan) add(t *spec.Trace, target *Target, w Wishes) error {
	if spec.IsGlob(t.Func.Name) {
		if w.Stack {
			return spec.Errorf(t.Text, t.Func.At, "a stack is made of single functions, and '%s' means many", t.Func.Name)
		}
		return plan.addGlob(t, target)
	}
	p, err := bindProbe(t, target)
	if err != nil {
		return err
	}
	plan.Probes = append(plan.Probes, p)
	plan.Notes = append(plan.Notes, p.Func.notes()...)
	return nil
}

// builder builds a probe of a spec.
type builder struct {
	binder
	probe  *Probe
	values map[string]*Value // by expression and format
}

// bindProbe binds names to types; how to attach is left open.
func bindProbe(trace *spec.Trace, target *Target) (*Probe, error) {
	fn, err := FindFunction(trace, target)
	if err != nil {
		return nil, err
	}
	p := &Probe{Trace: trace, Func: fn}
	b := &builder{binder: binder{trace: trace, target: target, fn: fn}, probe: p, values: map[string]*Value{}}
	items := trace.Items
	if items == nil {
		items = b.everything()
	}
	var all []*Value
	var tests AllOf
	for _, item := range items {
		value, err := b.shared(item)
		if err != nil {
			return nil, err
		}
		if !contains(all, value) {
			all = append(all, value)
		}
		if item.Pred == nil {
			continue
		}
		test, err := b.leaf(item, false)
		if err != nil {
			return nil, err
		}
		tests = append(tests, test)
	}
	if trace.Cond != nil {
		test, err := b.test(trace.Cond, false)
		if err != nil {
			return nil, err
		}
		tests = append(tests, flatAll(test)...)
	}
	p.settle(all, tests)
	return p, nil
}

// everything is every argument, and the return value if there is one.
func (b *builder) everything() []*spec.Item {
	var items []*spec.Item
	at := b.trace.Func.At
	for _, param := range b.fn.Params {
		items = append(items, &spec.Item{Value: &spec.Arg{Name: spec.Ident{Name: param.Name, At: at}}})
	}
	if b.fn.Result != nil && !neverReturns[b.fn.Name] {
		items = append(items, &spec.Item{Value: &spec.Return{At: at}})
	}
	return items
}

// shared binds an item's value, once for all the places that name it.
func (b *builder) shared(item *spec.Item) (*Value, error) {
	key := item.Value.String() + ":" + item.Format.Name
	if v := b.values[key]; v != nil {
		return v, nil
	}
	v, err := b.value(item.Value, item.Format)
	if err == nil {
		b.values[key] = v
	}
	return v, err
}

func contains(values []*Value, v *Value) bool {
	for _, have := range values {
		if have == v {
			return true
		}
	}
	return false
}

// settle deals values and tests out to the two sides of a call. What can be
// known on both belongs to the entry, unless the spec has no other use for it.
func (p *Probe) settle(values []*Value, tests AllOf) {
	used := append([]*Value(nil), values...)
	for l := range leaves(tests) {
		used = append(used, l.Value)
	}
	var entry, ret bool
	for _, v := range used {
		entry = entry || v.Side == AtEntry
		ret = ret || v.Side == AtReturn
		p.Timed = p.Timed || v.Base.Builtin == Duration
	}
	for _, v := range used {
		if v.Side == AnySide && ret && !entry {
			v.Side = AtReturn
		} else if v.Side == AnySide {
			v.Side = AtEntry
		}
	}
	for _, v := range values {
		if v.Side == AtReturn {
			p.Return = append(p.Return, v)
		} else {
			p.Entry = append(p.Entry, v)
		}
	}
	for _, t := range tests {
		if t.side() == AtReturn {
			p.ReturnTests = append(p.ReturnTests, t)
		} else {
			p.EntryTests = append(p.EntryTests, t)
		}
	}
	p.Paired = entry && ret && len(tests) > 0
	p.OnEntry = !p.Paired && (entry || !ret)
	p.OnReturn = p.Paired || ret
}

// decide chooses how to attach and what to keep from entry until return.
func (p *Probe) decide(f Features, force Kind, crowd crowd) error {
	attach, err := chooseAttach(p, f, force, crowd)
	if err != nil {
		return err
	}
	p.Attach = attach
	if p.Chain != nil {
		return nil
	}
	p.Stash = p.Timed || p.Paired && !(p.Attach.Return == Fexit && p.entryInRegisters())
	if !p.Stash {
		return nil
	}
	return p.flagTests()
}

// flag replaces the parts of a return test that are about the entry, as few and
// as large ones as possible.
func (p *Probe) flag(t Test) Test {
	if t.side() == AtEntry {
		f := &Flag{Test: t, Bit: len(p.Flags)}
		p.Flags = append(p.Flags, f)
		return f
	}
	switch t := t.(type) {
	case AllOf:
		entry, rest := bySide(t)
		if len(entry) > 0 {
			return append(AllOf{p.flag(AllOf(entry))}, p.flagEach(rest)...)
		}
		return AllOf(p.flagEach(rest))
	case AnyOf:
		entry, rest := bySide(t)
		if len(entry) > 0 {
			return append(AnyOf{p.flag(AnyOf(entry))}, p.flagEach(rest)...)
		}
		return AnyOf(p.flagEach(rest))
	}
	return t
}

func (p *Probe) flagEach(tests []Test) []Test {
	for i, t := range tests {
		tests[i] = p.flag(t)
	}
	return tests
}

// bySide tells the tests that can be made at entry from the others.
func bySide(tests []Test) (entry, rest []Test) {
	for _, t := range tests {
		if t.side() == AtEntry {
			entry = append(entry, t)
		} else {
			rest = append(rest, t)
		}
	}
	return entry, rest
}

// flagTests makes flags of all return tests.
func (p *Probe) flagTests() error {
	p.flagEach(p.ReturnTests)
	if n := len(p.Flags); n > faultFlag {
		return spec.Errorf(p.Trace.Text, p.Trace.Cond.Span(), "the condition joins entry and return in %d places, and %d is the limit", n, faultFlag)
	}
	return nil
}

// entryInRegisters says whether everything that is wanted of the entry is an
// argument word, with no memory to read.
func (p *Probe) entryInRegisters() bool {
	for _, v := range p.Entry {
		if !v.lasts() || v.Pointee != nil {
			return false
		}
	}
	for _, tests := range [][]Test{p.EntryTests, p.ReturnTests} {
		for l := range leaves(AllOf(tests)) {
			if l.Value.Side == AtEntry && (!l.Value.lasts() || l.Pred.Pattern != nil) {
				return false
			}
		}
	}
	return true
}

// lasts says whether a fexit program finds the value as it was at entry.
func (v *Value) lasts() bool {
	return v.inWords() || v.Base.Builtin == PID || v.Base.Builtin == TID
}
