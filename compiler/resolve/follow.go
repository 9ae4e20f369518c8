package resolve

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// Following holds the user's options for following objects, besides the spec that
// chooses them.
type Following struct {
	In      []string      // globs of the functions, as GLOB or MODULE:GLOB; nil for all
	Modules []string      // loaded modules whose functions are looked at, too
	Show    []*spec.Trace // specs whose items are the values to show, with the object by its name
	Objects int           // number of objects to follow in all, or 0 for no limit
	Stack   bool          // whether each line has the kernel's stack
	Also    []string      // functions that get an object and return another one, which is followed, too
}

// made has the types for which a function that gets an object and returns one is taken
// to make the new one from it. With other types, such functions mostly look up an
// object that exists already.
var made = []string{"sk_buff", "sock", "bio", "request"}

// follower builds the plan of a command that follows objects.
type follower struct {
	Following
	target    *compiler.Target
	plan      *compiler.Plan
	trace     *spec.Trace         // chooses the objects
	object    *compiler.Value     // the pointer to the object, in that spec
	structure *btf.Struct         // the type of the object
	ends      []string            // functions that end objects
	bound     map[string]bool     // arguments that have a probe, by argumentKey
	matched   map[string]bool     // those of In that match a function
	asText    map[*spec.Item]bool // values of Show that are strings, as the spec compares them with one
}

func newFollower(t *spec.Trace, f Following, target *compiler.Target) *follower {
	return &follower{Following: f, target: target, trace: t, plan: &compiler.Plan{LeftOut: map[string]int{}}, bound: map[string]bool{}, matched: map[string]bool{}, asText: map[*spec.Item]bool{}}
}

// Follow binds the spec that chooses objects, and finds the functions that get them.
func Follow(t *spec.Trace, f Following, target *compiler.Target) (*compiler.Plan, error) {
	w := newFollower(t, f, target)
	if err := w.start(); err != nil {
		return nil, err
	}
	w.ends = endings[w.structure.Name]
	if err := w.meets(); err != nil {
		return nil, err
	}
	if err := w.frees(); err != nil {
		return nil, err
	}
	kind := compiler.Kind("")
	if target.Features.KprobeMulti {
		kind = compiler.KprobeMulti
	}
	return decideAll(w.plan, target, kind, nil)
}

// start binds the spec that chooses objects.
func (w *follower) start() error {
	t := w.trace
	switch {
	case !ordered(w.target):
		return t.Errorf(t.Func.At, "to follow objects needs Linux 5.18 on this machine").WithHint("trace the functions that get them")
	case t.Line != nil:
		return t.Errorf(t.Func.At, "objects are chosen by a spec, and this is a kprobe_events line").WithHint("write '%s(ARGUMENT)'", t.Symbol())
	case t.Ending != nil:
		return t.Errorf(t.Ending.Func.At, "an object is followed from one point on, and this is a span").WithHint("leave out what follows '=>'")
	case t.Iterator:
		return t.Errorf(t.Func.At, "an object is followed from a call on, and %s is an iterator, which reads what is there now", t.Func.Name).
			WithHint("name a function that gets it: FUNC(ARGUMENT)")
	case spec.IsGlob(t.Func.Name):
		return t.Errorf(t.Func.At, "objects are chosen at one function, and '%s' means many", t.Func.Name)
	case len(t.Aggregates()) > 0:
		return t.Errorf(t.Aggregates()[0].At, "calls are shown one by one, and %s() counts them", t.Aggregates()[0].Name.Name)
	case len(t.Items) == 0:
		return t.Errorf(t.Func.At, "the spec names no object").WithHint("name the argument to follow: %s(ARGUMENT)", t.Func.Name)
	case durationOf(t) != nil:
		return t.Errorf(durationOf(t).Span(), "'$duration' is of a whole call, and an object is chosen at one side of it").WithHint("ksnoop trace shows calls")
	case asksOver(t):
		return t.Errorf(t.Func.At, "'after' and 'diff' are about both sides of a call, and an object is chosen at one of them")
	}
	for _, item := range t.Items[1:] {
		if item.Pred == nil {
			return t.Errorf(item.Value.Span(), "the spec names the object to follow, and '%s' is a second value", item.Value).
				WithHint("show values with --show '%s'", item.Value)
		}
	}
	fn, err := FindFunction(t, w.target)
	if err != nil {
		return err
	}
	p := &compiler.Probe{Trace: t, Asked: t, Func: fn}
	b := newBuilder(p, w.target)
	if w.object, err = b.sharedValue(t.Items[0].Value, spec.Ident{}); err != nil {
		return err
	}
	if w.structure = pointedStructure(w.object.Type); w.structure == nil {
		return t.Errorf(t.Items[0].Value.Span(), "'%s' is %s, and an object is what a pointer to a structure points to", w.object.Name, describe(w.object.Type))
	}
	w.object.Pointee = nil
	_, _, conds, err := b.list(t.Items, compiler.NoMeasure)
	if err != nil {
		return err
	}
	shown, err := w.shown(&b.binder)
	if err != nil {
		return err
	}
	if err := b.settlePoint(shown, conds, w.object); err != nil {
		return t.Errorf(t.Func.At, "an object is chosen at the entry of %s or at its return, and the spec is about both", fn.Name).
			WithHint("name arguments only, or the return value only")
	}
	p.Follow = &compiler.Follow{Role: compiler.Starts, Object: w.object, Limit: w.Objects, Type: w.structure}
	w.add(p, w.object.Base.Param, w.object.InWords())
	return nil
}

// add adds a probe to the plan. If whole is set, the argument itself is the object, and
// gets no other probe.
func (w *follower) add(p *compiler.Probe, param *compiler.Param, whole bool) {
	if whole {
		w.bound[argumentKey(p.Func, param)] = true
	}
	w.plan.Probes = append(w.plan.Probes, p)
}

func argumentKey(fn *compiler.Function, param *compiler.Param) string {
	for i := range fn.Params {
		if &fn.Params[i] == param || fn.Params[i].Name == param.Name && fn.Params[i].Words[0] == param.Words[0] {
			return fmt.Sprintf("%t:%s:%s:%d", fn.Tracepoint, fn.Module, fn.Name, i)
		}
	}
	return ""
}

// shown binds the values to show at a function.
func (w *follower) shown(b *binder) ([]*compiler.Value, error) {
	var values []*compiler.Value
	own := b.trace
	defer func() { b.trace, b.onEntry = own, false }()
	b.onEntry = b.alias != "" || w.object.Side != compiler.AtReturn
	for _, show := range w.Show {
		b.trace = show
		for _, item := range show.Items {
			if item.Pred != nil {
				return nil, b.errorf(item.Value.Span(), "the values to show have no conditions").WithHint("write the condition in the spec: ... if %s", item)
			}
			v, err := b.sharedValue(item.Value, item.Format)
			if err == nil {
				err = w.shownAt(b, item, v)
			}
			if err != nil {
				return nil, w.notOfObject(b, err)
			}
			if b.alias == "" { // the spec, whose conditions are bound
				w.asText[item] = item.Format.Name == "" && (v.Format == "string" || v.Text != compiler.NoText)
			} else if w.asText[item] { // all lines show the same
				readAsText(v)
			}
			if !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
	}
	if w.Stack {
		v, err := b.sharedValue(&spec.Builtin{Name: spec.Ident{Name: "kstack"}}, spec.Ident{})
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

// shownAt returns an error for a value of the other side of a call than the one where b
// has the object.
func (w *follower) shownAt(b *binder, item *spec.Item, v *compiler.Value) error {
	side, where := b.side, "entry"
	if b.alias == "" {
		side = w.object.Side
	}
	if side == compiler.AtReturn {
		where = "return"
	}
	for part := range v.Values {
		other := side != compiler.AnySide && part.Side != compiler.AnySide && part.Side != side
		if other || part.Base.Builtin == compiler.Duration {
			return b.errorf(item.Value.Span(), "'%s' is not known where the object is shown: at the %s of %s", item.Value, where, b.fn.Name).
				WithHint("name a member of it, as in %s->MEMBER", w.object.Name)
		}
	}
	return nil
}

// notOfObject explains why a value to show is not known at a function that gets the
// object: it is another argument of the function in the spec.
func (w *follower) notOfObject(b *binder, err error) error {
	var refused *spec.Error
	if b.alias == "" || !errors.As(err, &refused) || refused.Kind != spec.NoArgument && refused.Kind != spec.NamesInHint {
		return err
	}
	of := b.trace.Text[refused.At.Start:refused.At.End]
	return b.errorf(refused.At, "'%s' is an argument of %s, and values are shown at all functions that get the object, such as %s", of, w.trace.Func.Name, b.fn.Name).
		WithHint("name a member of the object, as in %s->MEMBER", w.object.Name)
}

// meets adds the functions that get objects.
func (w *follower) meets() error {
	takers, err := w.takers()
	if err != nil {
		return fmt.Errorf("read the kernel's types: %w", err)
	}
	found, reasons := 0, map[string]string{}
	for _, t := range takers {
		name := t.Name
		ends, wanted := t.module == "" && slices.Contains(w.ends, name), w.wanted(t.module, name)
		made := w.makes(t.Func) && (wanted || w.target.Features.KprobeMulti || slices.Contains(w.Also, name))
		if !ends && !wanted && !made {
			continue
		}
		if wanted {
			found++
		}
		if err := w.meet(t.module, name, ends, wanted, made); err != nil {
			reasons[name] = reasonOf(err)
			if e := (*showError)(nil); errors.As(err, &e) {
				return e.err
			}
		}
	}
	if !w.target.Features.KprobeMulti && len(w.In) == 0 {
		return fmt.Errorf("this kernel attaches probes one by one, as it has no kprobe.multi links, and %d functions take struct %s *: "+
			"choose those to show with --in GLOB", found, w.structure.Name)
	}
	for name, reason := range reasons {
		w.leaveOut(name, reason)
	}
	for _, name := range w.Also {
		makes := func(p *compiler.Probe) bool { return p.Follow.Role == compiler.Joins && p.Func.Name == name }
		if !slices.ContainsFunc(w.plan.Probes, makes) {
			return spec.Errorf(name, spec.Span{Start: 0, End: len(name)}, "--also is %s: no function of this name can be traced that takes struct %s * and returns it", name, w.structure.Name)
		}
	}
	return w.unmatched(found, takers)
}

func (w *follower) leaveOut(name, reason string) {
	w.plan.Unfollowed = append(w.plan.Unfollowed, fmt.Sprintf("%s: %s", name, reason))
	slices.Sort(w.plan.Unfollowed)
}

// showError is an error in the values to show.
type showError struct{ err error }

func (e *showError) Error() string { return e.err.Error() }

// meet adds a probe for each argument in which a function gets an object, if the
// function is wanted or ends the object, and one if it makes a new object from it.
func (w *follower) meet(module, name string, ends, wanted, makes bool) error {
	if module == "" {
		if _, ok := listed(w.target, name); !ok {
			return errors.New("ftrace has no hook in it")
		}
	}
	one := &spec.Trace{Text: w.trace.Text, Func: spec.Ident{Name: name, At: w.trace.Func.At}, Items: []*spec.Item{}}
	one.Module.Name = module
	fn, err := FindFunction(one, w.target)
	if err != nil {
		return err
	}
	for i := range fn.Params {
		param := &fn.Params[i]
		if !ends && !wanted || !w.takes(param.Type) || len(param.Words) != 1 || w.bound[argumentKey(fn, param)] {
			continue
		}
		role := compiler.Meets
		if ends {
			role = compiler.Ends
		}
		p, err := w.meeting(one, fn, param, role)
		if err != nil {
			return err
		}
		p.OfGlob = !ends
		w.add(p, param, true)
	}
	if !makes {
		return nil
	}
	p, err := w.joining(one, fn)
	if err != nil {
		return err
	}
	p.OfGlob = true
	w.add(p, nil, false)
	return nil
}

// makes reports whether the object that a function returns is followed, if the function
// gets one that is followed.
func (w *follower) makes(fn *btf.Func) bool {
	if !w.takes(fn.Type.(*btf.FuncProto).Return) {
		return false
	}
	return slices.Contains(made, w.structure.Name) || slices.Contains(w.Also, fn.Name)
}

// joining binds a probe for a function that gets an object and returns one.
func (w *follower) joining(t *spec.Trace, fn *compiler.Function) (*compiler.Probe, error) {
	p := &compiler.Probe{Trace: t, Asked: w.trace, Func: fn, Paired: true, OnReturn: true}
	bind := func(param *compiler.Param, side compiler.Side) (*binder, *compiler.Value, error) {
		b := &binder{trace: t, target: w.target, fn: fn, values: map[string]*compiler.Value{}, alias: w.object.Name, object: param, side: side, modules: &p.Modules}
		object, err := b.sharedValue(w.trace.Items[0].Value, spec.Ident{})
		if err == nil {
			object.Pointee = nil
		}
		return b, object, err
	}
	i := slices.IndexFunc(fn.Params, func(p compiler.Param) bool { return w.takes(p.Type) && len(p.Words) == 1 })
	if i < 0 {
		return nil, errors.New("it gets the object in several words")
	}
	_, parent, err := bind(&fn.Params[i], compiler.AtEntry)
	if err != nil {
		return nil, err
	}
	b, result, err := bind(fn.Result, compiler.AtReturn)
	if err != nil {
		return nil, err
	}
	parent.Hidden = true
	p.Entry = []*compiler.Value{parent}
	if p.Return, err = w.shown(b); err != nil {
		return nil, &showError{err}
	}
	for _, v := range p.Return {
		if v.Side == compiler.AnySide {
			v.Side = compiler.AtReturn
		}
	}
	settleSides(p.Return)
	p.Follow = &compiler.Follow{Role: compiler.Joins, Object: parent, Result: result, Type: w.structure}
	return p, nil
}

// meeting binds a probe for an argument of a function.
func (w *follower) meeting(t *spec.Trace, fn *compiler.Function, param *compiler.Param, role compiler.Role) (*compiler.Probe, error) {
	p := &compiler.Probe{Trace: t, Asked: w.trace, Func: fn}
	b := newBuilder(p, w.target)
	b.alias, b.object, b.side = w.object.Name, param, compiler.AtEntry
	object, err := b.sharedValue(w.trace.Items[0].Value, spec.Ident{})
	if err != nil {
		return nil, err
	}
	object.Pointee = nil
	shown, err := w.shown(&b.binder)
	if err != nil {
		return nil, &showError{err}
	}
	if err := b.settlePoint(shown, nil, object); err != nil {
		return nil, &showError{err}
	}
	p.Follow = &compiler.Follow{Role: role, Object: object, Type: w.structure}
	return p, nil
}
