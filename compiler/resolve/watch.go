package resolve

import (
	"fmt"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// addWatch binds a trace that watches memory.
func addWatch(plan *compiler.Plan, t *spec.Trace, target *compiler.Target, objects int) error {
	if !t.Values {
		return addObjects(plan, t, target, max(objects, 1))
	}
	fn := atOnce(t)
	fn.Name = t.Items[0].Value.String()
	p := &compiler.Probe{Trace: t, Asked: t, Func: fn}
	b := newBuilder(p, target)
	v, err := b.watched(plan, t.Items[0])
	if err != nil {
		return err
	}
	if p.Watch, err = b.watch(v, t.Items[0].Value.Span()); err != nil {
		return err
	}
	if err := b.room(plan, 1); err != nil {
		return err
	}
	p.Watch.Slot = slots(plan)
	conds, err := b.watchConds()
	if err != nil {
		return err
	}
	values, err := b.writeItems(p.Watch)
	if err != nil {
		return err
	}
	settle(p, values, conds)
	plan.Probes = append(plan.Probes, p)
	return nil
}

// writeItems returns what is recorded of a write. The trace may end with the stack.
func (b *builder) writeItems(w *compiler.Watch) ([]*compiler.Value, error) {
	values := []*compiler.Value{w.Old, w.At}
	if w.New != nil {
		values = append(values, w.New)
	}
	for _, item := range b.trace.Items[len(b.trace.Watched()):] {
		v, err := b.value(item.Value, item.Format)
		if err != nil {
			return nil, err
		}
		w.Stack = v
		values = append(values, v)
	}
	return values, nil
}

// slots counts the places in [compiler.WatchedMap] that are taken.
func slots(plan *compiler.Plan) (n int) {
	for _, p := range plan.Probes {
		if p.Watch != nil {
			n++
		}
	}
	return n
}

// room returns an error if the hardware has fewer breakpoints than the plan takes
// plus more. Each is set on every CPU.
func (b *builder) room(plan *compiler.Plan, more int) error {
	arch, all := b.target.Arch, slots(plan)+more
	if all <= arch.Breakpoints {
		return nil
	}
	err := b.errorf(b.trace.Func.At, "this takes %d hardware breakpoints, and %s has %d for each CPU", all, arch.Name, arch.Breakpoints)
	if more == 1 {
		return err.WithHint("watch less at a time")
	}
	return err.WithHint("each object takes one for each member: name fewer members, or with --objects fewer objects")
}

// watched binds the memory to watch.
func (b *builder) watched(plan *compiler.Plan, item *spec.Item) (*compiler.Value, error) {
	v, err := b.own(item)
	if err != nil {
		return nil, err
	}
	e := item.Value
	switch last := len(v.Path) - 1; {
	case v.Base.PerCPU != 0:
		return nil, b.errorf(e.Span(), "'%s' is a per-CPU variable, and each CPU has its own", e).
			WithHint("an address with a cast is one of them: *(u64 *)0xffff888012345600")
	case last < 0 || v.Path[last].Addr || v.Base.Addr == 0:
		return nil, b.errorf(e.Span(), "'%s' is not memory that can be watched", e).WithHint("it must be a variable, or at an address: @NAME, *(u32 *)0xffff888012345600")
	}
	if t, ok := v.Type.(*btf.Int); ok && t.Name == typeUnknown {
		sizeUnknown(plan, v, e)
	}
	return v, nil
}

// sizeUnknown gives a variable that BTF does not describe the size that its address
// allows.
func sizeUnknown(plan *compiler.Plan, v *compiler.Value, e spec.Expr) {
	size := 8
	for (v.Base.Addr+uint64(v.Path[0].Off))%uint64(size) != 0 {
		size /= 2
	}
	v.Type = intType(typeUnknown, uint32(size), btf.Unsigned)
	v.Load = &compiler.Scalar{Size: size}
	v.Scalar = v.Load
	v.Path = appendPath(nil, compiler.Access{Off: v.Path[0].Off, Size: size})
	plan.Notes = append(plan.Notes, fmt.Sprintf("BTF has no type of %s, so %d bytes are watched and shown in hex: a cast says what it is, as in (int)%s", e, size, e))
}

// watch returns how the writes to the memory of a value are shown.
func (b *builder) watch(v *compiler.Value, at spec.Span) (*compiler.Watch, error) {
	size, err := b.widen(v, at)
	if err != nil {
		return nil, err
	}
	old := *v
	arch := b.target.Arch
	w := &compiler.Watch{Addr: v.Base.Addr, Path: v.Path, Size: size, Old: &old, New: v}
	ip := &compiler.Param{Name: "at", Type: word64, Size: 8, Words: []compiler.Word{{Reg: arch.IP}}}
	w.At = &compiler.Value{
		Name: "at", Format: "symbol", Type: &btf.Pointer{Target: &btf.Void{}}, Base: compiler.Base{Param: ip},
		Load: &compiler.Scalar{Size: 8}, Scalar: &compiler.Scalar{Size: 8},
	}
	if arch.BreaksBefore {
		w.New = nil
	}
	return w, nil
}

// widen returns the number of bytes to watch for a value. A bitfield becomes a part of
// the word that it is in.
func (b *builder) widen(v *compiler.Value, at spec.Span) (int, error) {
	last := v.Path[len(v.Path)-1]
	addr := uint64(last.Off)
	if len(v.Path) == 1 {
		addr += v.Base.Addr
	}
	if v.Load != nil && v.Load.Bits != 0 {
		for size := 1; size <= 8; size *= 2 {
			before := int(addr % uint64(size))
			if before+last.Size > size {
				continue
			}
			load := *v.Load
			load.Shift += 8 * before
			last.Off, last.Size = last.Off-before, size
			v.Load, v.Path = &load, appendPath(v.Path[:len(v.Path)-1], last)
			return size, nil
		}
	}
	if !wordSize(uint32(last.Size)) {
		return 0, b.errorf(at, "'%s' has %d bytes, and the hardware watches 1, 2, 4 or 8", v.Name, last.Size).WithHint("name a member or an element of it")
	}
	if addr%uint64(last.Size) != 0 {
		return 0, b.errorf(at, "'%s' has %d bytes and is not at a multiple of that, and the hardware watches aligned memory only", v.Name, last.Size).
			WithHint("a cast takes a part of it: *(u8 *)ADDRESS")
	}
	return last.Size, nil
}

// itemConds binds the conditions of a trace on memory.
func (b *builder) itemConds() (conds compiler.AllOf, err error) {
	for _, item := range b.trace.Watched() {
		if item.Pred == nil {
			continue
		}
		c, err := b.leaf(item, false)
		if err != nil {
			return nil, err
		}
		conds = append(conds, c)
	}
	if conds, err = b.withCond(conds); err != nil {
		return nil, err
	}
	return conds, b.ownOnly()
}

// watchConds binds the conditions on a write. A condition on what is watched is about
// the new value.
func (b *builder) watchConds() (compiler.AllOf, error) {
	items := b.trace.Items[:1]
	conds, err := b.itemConds()
	if err != nil {
		return nil, err
	}
	if b.probe.Watch.New != nil {
		return conds, nil
	}
	key := b.values[items[0].Value.String()+":"+items[0].Format.Name]
	for l := range compiler.Leaves(conds) {
		for v := range l.Value.Values {
			if v == key {
				return nil, b.errorf(items[0].Value.Span(), "a condition on '%s' cannot be tested: %s tells the value before the write only", key.Name, b.target.Arch.Name)
			}
		}
	}
	return conds, nil
}

// addObjects binds a trace that watches members of the objects of the next calls: one
// probe for the writes to each member, one that finds objects, and those that end them.
func addObjects(plan *compiler.Plan, t *spec.Trace, target *compiler.Target, objects int) error {
	if !ordered(target) {
		return t.Errorf(t.Func.At, "to watch an object that calls find needs Linux 5.18 on this machine").
			WithHint("watch its memory by its address: *(TYPE *)ADDRESS")
	}
	if first := finder(plan); first != nil {
		return t.Errorf(t.Func.At, "objects are found by one spec, and '%s' is another one", first.Trace.Text).
			WithHint("run a second ksnoop watch for them")
	}
	if d := durationOf(t); d != nil {
		return t.Errorf(d.Span(), "'$duration' is of a whole call, and an object is found at one side of it").WithHint("ksnoop trace shows calls")
	}
	fn, err := FindFunction(t, target)
	if err != nil {
		return err
	}
	p := &compiler.Probe{Trace: t, Asked: t, Func: fn}
	b := newBuilder(p, target)
	members, object, base, err := b.members()
	if err != nil {
		return err
	}
	if err := b.room(plan, objects*len(members)); err != nil {
		return err
	}
	conds, err := b.itemConds()
	if err != nil {
		return err
	}
	p.Find = &compiler.Find{}
	var values []*compiler.Value
	for _, now := range members {
		m := compiler.Member{Addr: addressOfMemory(now.value), Now: now.value}
		values = append(values, m.Addr, m.Now)
		p.Find.Members = append(p.Find.Members, m)
	}
	if err := b.settlePoint(values, conds, object); err != nil {
		return b.errorf(t.Func.At, "an object is found at the entry of %s or at its return, and the spec is about both", fn.Name).
			WithHint("name arguments only, or the return value only")
	}
	p.Follow = &compiler.Follow{Role: compiler.Starts, Object: object, Limit: objects, Type: pointedStructure(object.Type)}
	for range objects {
		for i, m := range members {
			slot, err := b.slot(m.watch, p, i, slots(plan))
			if err != nil {
				return err
			}
			plan.Probes = append(plan.Probes, slot)
		}
	}
	plan.Probes = append(plan.Probes, p)
	plan.Notes = append(plan.Notes, fn.Notes()...)
	choice := *t
	choice.Items = []*spec.Item{{Value: base}}
	ends := &follower{target: target, trace: &choice, plan: plan, bound: map[string]bool{}, object: object, structure: pointedStructure(object.Type)}
	return ends.end()
}

// member is a member to watch of an object that a call finds.
type member struct {
	value *compiler.Value // at the call
	watch *compiler.Watch
}

// members binds the members to watch and the object that all of them are in. It returns
// the object's expression, too.
func (b *builder) members() (all []member, object *compiler.Value, base spec.Expr, err error) {
	for _, item := range b.trace.Watched() {
		v, err := b.memberOf(item)
		if err != nil {
			return nil, nil, nil, err
		}
		w, err := b.watch(v, item.Value.Span())
		if err != nil {
			return nil, nil, nil, err
		}
		o, e, err := b.objectOf(item.Value)
		switch {
		case err != nil:
			return nil, nil, nil, err
		case base == nil:
			object, base = o, e
		case base.String() != e.String():
			return nil, nil, nil, b.errorf(item.Value.Span(), "'%s' is a member of '%s', and what is watched before it is one of '%s'", item.Value, e, base).
				WithHint("one object is watched: run a second ksnoop watch for the other")
		}
		all = append(all, member{v, w})
	}
	return all, object, base, nil
}

// finder returns the probe that finds objects, or nil.
func finder(plan *compiler.Plan) *compiler.Probe {
	for _, p := range plan.Probes {
		if p.Find != nil {
			return p
		}
	}
	return nil
}

// memberOf binds a member to watch of an object.
func (b *builder) memberOf(item *spec.Item) (*compiler.Value, error) {
	v, err := b.own(item)
	if err != nil {
		return nil, err
	}
	if last := len(v.Path) - 1; last < 0 || v.Path[last].Addr || v.Path[last].In != compiler.KernelSpace || v.Base.Addr != 0 {
		return nil, b.noMember(item.Value)
	}
	return v, nil
}

func (b *builder) noMember(e spec.Expr) error {
	return b.errorf(e.Span(), "'%s' is not a member of an object", e).
		WithHint("it must be behind a pointer to a structure: %s(ARGUMENT->MEMBER)", b.trace.Target())
}

// objectOf binds the pointer to the object that a member is in, and returns its
// expression, too.
func (b *builder) objectOf(member spec.Expr) (*compiler.Value, spec.Expr, error) {
	for e := member; ; {
		switch x := e.(type) {
		case *spec.Member:
			e = x.X
		case *spec.Index:
			e = x.X
		case *spec.Range:
			e = x.X
		case *spec.Deref:
			e = x.X
		case *spec.Cast:
			e = x.X
			continue
		default:
			return nil, nil, b.noMember(member)
		}
		v, err := b.sharedValue(e, spec.Ident{})
		if err != nil {
			return nil, nil, err
		}
		if pointedStructure(v.Type) == nil {
			continue
		}
		object := *v
		object.Pointee, object.Text, object.Walk = nil, compiler.NoText, nil
		return &object, e, nil
	}
}

// addressOfMemory returns the address of the memory of a value.
func addressOfMemory(v *compiler.Value) *compiler.Value {
	last := v.Path[len(v.Path)-1]
	word := &compiler.Scalar{Size: 8}
	return &compiler.Value{
		Name: "&" + v.Name, Type: &btf.Pointer{Target: &btf.Void{}}, Side: v.Side, Base: v.Base, Load: word, Scalar: word, Format: "x",
		Path: appendPath(v.Path[:len(v.Path)-1], compiler.Access{Off: last.Off, Size: 8, Addr: true}),
	}
}

// slot returns the probe of writes to a member of one of the objects.
func (b *builder) slot(w *compiler.Watch, finder *compiler.Probe, member, number int) (*compiler.Probe, error) {
	one := *w
	one.Slot, one.Finder, one.Member, one.Path, one.Addr = number, finder, member, nil, 0
	one.Off = w.Path[len(w.Path)-1].Off
	old, at := *w.Old, *w.At
	old.Base, old.Side, at.Side = compiler.Base{}, compiler.AnySide, compiler.AnySide
	one.Old, one.At = &old, &at
	if w.New != nil {
		now := old
		one.New = &now
	}
	fn := *atOnce(b.trace)
	fn.Name = b.trace.Items[member].Value.String()
	p := &compiler.Probe{Trace: b.trace, Asked: b.trace, Func: &fn, Watch: &one}
	values, err := b.writeItems(&one)
	if err != nil {
		return nil, err
	}
	settle(p, values, nil)
	return p, nil
}
