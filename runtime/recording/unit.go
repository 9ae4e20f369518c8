package recording

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
)

// description codes the parts of a unit that are needed to decode and show its records.
// A reference to another part is its number, which is known by then.
type description struct {
	codec
	part   *part // of the types, when writing
	types  types // when reading
	values []*compiler.Value
	probes []*compiler.Probe
	number map[any]int // of the values and the probes, when writing
}

// describe appends the description of a unit.
func describe(unit *compiler.Unit) ([]byte, error) {
	for _, ev := range unit.Events {
		if ev.Probe.Watch != nil || ev.Probe.Follow != nil {
			return nil, errors.New("only what trace shows can be recorded")
		}
	}
	d := &description{}
	var err error
	if d.part, err = newPart(); err != nil {
		return nil, err
	}
	d.gather(unit)
	d.unit(unit)
	if d.err != nil {
		return nil, d.err
	}
	raw, err := d.part.raw()
	if err != nil {
		return nil, fmt.Errorf("write the types of the records: %w", err)
	}
	whole := &codec{}
	whole.bytes(&raw)
	return append(whole.buf, d.buf...), nil
}

// readUnit reads a description, which may be anything.
func readUnit(buf []byte) (*compiler.Unit, error) {
	d := &description{codec: codec{buf: buf, reading: true}}
	var raw []byte
	d.bytes(&raw)
	if d.err != nil {
		return nil, d.err
	}
	var err error
	if d.types, err = readTypes(raw); err != nil {
		return nil, err
	}
	unit := &compiler.Unit{}
	d.unit(unit)
	if d.err == nil && len(d.buf) > 0 {
		d.fail()
	}
	return unit, d.err
}

// gather numbers the probes and the values of a unit: those that others refer to come
// before them.
func (d *description) gather(unit *compiler.Unit) {
	d.number = map[any]int{}
	var add func(v *compiler.Value)
	add = func(v *compiler.Value) {
		if _, known := d.number[v]; known || v == nil {
			return
		}
		d.number[v] = -1 // until those that it refers to have theirs
		add(v.Elem)
		add(v.Before)
		d.number[v] = len(d.values)
		d.values = append(d.values, v)
	}
	probe := func(p *compiler.Probe) {
		if _, known := d.number[p]; known {
			return
		}
		d.number[p] = len(d.probes)
		d.probes = append(d.probes, p)
		for _, v := range slices.Concat(p.Entry, p.Return, p.Key) {
			add(v)
		}
		for _, a := range p.Aggregates {
			add(a.Value)
		}
	}
	for _, ev := range unit.Events {
		for _, v := range ev.Items {
			add(v)
		}
		probe(ev.Probe)
		if c := ev.Probe.Chain; c != nil {
			for _, p := range c.Of {
				probe(p)
			}
		}
		if s := ev.Probe.Span; s != nil {
			probe(s.Begin)
			probe(s.End)
		}
	}
}

// unit describes a unit.
func (d *description) unit(u *compiler.Unit) {
	c := &d.codec
	c.flags(&u.CountsCalls)
	list(d, &d.values, d.value)
	list(d, &d.probes, d.probe)
	d.chains()
	d.spans()
	list(d, &u.Events, func(ev *compiler.EventType) { d.event(ev, u) })
	each(c, &u.Attachments, func(a *compiler.Attachment) {
		d.kind(&a.Kind)
		each(c, &a.Places, func(p *compiler.Place) { d.ofProbe(&p.Probe) })
	})
	list(d, &u.Tables, func(t *compiler.TableLayout) {
		byFunction := t.Function >= 0
		c.flags(&byFunction)
		if c.reading && !byFunction {
			t.Function = -1
		}
		each(c, &t.Events, func(n *int) { c.index(n, len(u.Events)) })
		if len(t.Events) == 0 || slices.ContainsFunc(t.Events, func(n int) bool { return n < 0 || u.Events[n].Probe.Measure != compiler.Tables }) {
			c.fail()
		}
	})
}

// list is a list of what pointers point to.
func list[T any](d *description, all *[]*T, one func(*T)) {
	each(&d.codec, all, func(p **T) {
		if d.reading {
			*p = new(T)
			d.take(unsafe.Sizeof(**p))
		}
		one(*p)
	})
}

func (d *description) value(v *compiler.Value) {
	c := &d.codec
	c.text(&v.Name, &v.Format)
	number(c, &v.Side)
	text := v.Text
	if text == compiler.EitherText {
		text = compiler.KernelText // user, below, tells the rest
	}
	number(c, &text)
	number(c, &v.Base.Builtin)
	user := v.Text.Space() != compiler.KernelSpace || slices.ContainsFunc(v.Path, func(a compiler.Access) bool { return a.In != compiler.KernelSpace })
	c.flags(&v.Hidden, &user)
	d.typ(&v.Type)
	d.typ(&v.Pointee)
	d.scalar(&v.Scalar)
	d.scalar(&v.Load)
	earlier := d.values
	if c.reading {
		earlier = earlier[:len(earlier)-1]
	}
	reference(d, &v.Elem, earlier)
	reference(d, &v.Before, earlier)
	if !c.reading {
		return
	}
	v.Text = text
	if user {
		v.Path = []compiler.Access{{In: compiler.UserSpace}}
	}
	if v.Text > compiler.PathText || v.Base.Builtin > compiler.Task || v.Type == nil || v.Elem != nil && v.Elem.Load == nil {
		c.fail()
	}
}

// scalar is a flag that there is one, then its format.
func (d *description) scalar(p **compiler.Scalar) {
	there := *p != nil
	if d.flags(&there); !there {
		return
	}
	if d.reading {
		*p = &compiler.Scalar{}
	}
	s := *p
	number(&d.codec, &s.Size, &s.Shift, &s.Bits)
	d.flags(&s.Signed, &s.Bool)
	if !slices.Contains([]int{1, 2, 4, 8}, s.Size) || s.Shift > 64 || s.Bits > 64 {
		d.fail()
	}
}

// typ is the number of a type, one more than that in the part, or 0 for none.
func (d *description) typ(t *btf.Type) {
	id := -1
	if !d.reading && *t != nil {
		var err error
		if id, err = d.part.id(*t); err != nil && d.err == nil {
			d.err = fmt.Errorf("write the types of the records: %w", err)
		}
	}
	d.index(&id, max(len(d.types), id+1))
	if d.reading && id >= 0 {
		*t = d.types[id]
	}
}

func (d *description) ofValue(v **compiler.Value) { reference(d, v, d.values) }

func (d *description) ofProbe(p **compiler.Probe) {
	if reference(d, p, d.probes); *p == nil {
		d.fail()
	}
}

// reference is the number of what a pointer points to, or -1 for nil.
func reference[T any](d *description, p **T, all []*T) {
	n := -1
	if *p != nil {
		n = d.number[*p]
	}
	d.index(&n, len(all))
	if d.reading && n >= 0 {
		*p = all[n]
	}
}

func (d *description) probe(p *compiler.Probe) {
	c := &d.codec
	if c.reading {
		p.Func = &compiler.Function{}
	}
	fn := p.Func
	c.text(&fn.Name, &fn.Module, &fn.Symbol)
	c.flags(&fn.Tracepoint, &fn.Iterator, &p.Stash)
	each(c, &fn.Addrs, c.uint)
	number(c, &p.Offset)
	number(c, &p.Measure)
	if p.Measure != compiler.NoMeasure && p.Measure != compiler.Tables {
		c.fail()
	}
	d.line(p)
	d.hint(p)
	for _, values := range []*[]*compiler.Value{&p.Entry, &p.Return, &p.Key} {
		each(c, values, d.needValue)
	}
	if slices.ContainsFunc(p.Key, func(v *compiler.Value) bool { return v != nil && v.Base.Builtin == compiler.UserStack }) {
		c.fail() // names of its frames need an event
	}
	list(d, &p.Aggregates, func(a *compiler.Aggregate) {
		number(c, &a.Kind)
		number(c, &a.Low, &a.High, &a.Step)
		c.text(&a.Name)
		if d.ofValue(&a.Value); !countable(a) {
			c.fail()
		}
	})
}

// needValue is the number of a value, which must not be nil.
func (d *description) needValue(v **compiler.Value) {
	if d.ofValue(v); *v == nil {
		d.fail()
	}
}

// line is the text of a kprobe_events line without its filter, or "". Options such as
// --comm add conditions to the filter that no line can have.
func (d *description) line(p *compiler.Probe) {
	text := ""
	if !d.reading && p.Trace != nil && p.Trace.Line != nil {
		line := *p.Trace
		line.Cond = nil
		text = line.String()
	}
	d.text(&text)
	if !d.reading || text == "" {
		return
	}
	t, err := kprobe.ParseAny(text)
	if err != nil || t.Line == nil {
		d.fail()
		return
	}
	p.Trace = t
}

// hint is the list of the names that [compiler.Probe.StringConds] returns.
func (d *description) hint(p *compiler.Probe) {
	names := []string{}
	if !d.reading {
		names = p.StringConds()
	}
	d.texts(&names)
	for _, name := range names {
		if d.reading {
			p.EntryConds = append(p.EntryConds, &compiler.Leaf{Value: &compiler.Value{Name: name, Text: compiler.KernelText}})
		}
	}
}

// chains are the levels of each chain.
func (d *description) chains() {
	var all [][]*compiler.Probe
	for _, p := range d.probes {
		if p.Chain != nil && p.Chain.Level == 0 {
			all = append(all, p.Chain.Of)
		}
	}
	each(&d.codec, &all, func(of *[]*compiler.Probe) {
		each(&d.codec, of, d.ofProbe)
		for level, p := range *of {
			if d.reading && d.err == nil {
				p.Chain = &compiler.Chain{Level: level, Of: *of}
			}
		}
	})
}

// spans are the two probes of each span.
func (d *description) spans() {
	var all []*compiler.Span
	for _, p := range d.probes {
		if p.Begins() {
			all = append(all, p.Span)
		}
	}
	list(d, &all, func(s *compiler.Span) {
		d.ofProbe(&s.Begin)
		d.ofProbe(&s.End)
		if d.reading && d.err == nil {
			s.Begin.Span, s.End.Span = s, s
		}
	})
}

// attachKinds are the attach kinds that probes of trace can have.
var attachKinds = []compiler.Kind{
	compiler.Fentry, compiler.Fexit, compiler.Kprobe, compiler.Kretprobe, compiler.KprobeMulti, compiler.KretprobeMulti,
	compiler.KprobeSession, compiler.TpBTF, compiler.Iter,
}

func (d *description) kind(k *compiler.Kind) {
	text := string(*k)
	d.text(&text)
	if *k = compiler.Kind(text); !slices.Contains(attachKinds, *k) {
		d.fail()
	}
}

func (d *description) event(ev *compiler.EventType, u *compiler.Unit) {
	c := &d.codec
	if c.reading {
		ev.Number = len(u.Events) - 1
	}
	number(c, &ev.Kind)
	d.ofProbe(&ev.Probe)
	each(c, &ev.Items, d.needValue)
	l := &ev.Layout
	number(c, &l.Size, &l.Strings, &l.Texts, &l.Caller, &l.Begin, &l.Object, &l.Start, &l.Outcomes, &l.Operands, &l.Faults)
	each(c, &l.Slots, func(s *compiler.Slot) { number(c, &s.Off, &s.Data, &s.Cap, &s.Full) })
	if c.err == nil && !fits(ev) {
		c.fail()
	}
}
