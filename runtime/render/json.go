package render

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// jsonPrinter prints one JSON object on each line, as described in docs/json.md.
type jsonPrinter struct {
	page
	forms
	names
	unit    *compiler.Unit
	system  *runtime.System
	noted   time.Duration // the offset of the clocks that was printed last, or 0 if none was
	version string        // of ksnoop
	shapes  map[*compiler.EventType]*jsonShape
	arrange Arrangement
	named   []pointerName // what the pointers of the event point to
	word    []byte        // scratch buffer for a value that is to be quoted
}

func newJSON(o Options, unit *compiler.Unit) *jsonPrinter {
	p := &jsonPrinter{
		page: page{look: o.Look, stacks: o.Stacks}, names: o.names(), unit: unit, system: o.System, version: o.Version,
		shapes: map[*compiler.EventType]*jsonShape{}, arrange: o.Arrange,
	}
	if named := o.Values.Symbolize; named != nil {
		o.Values.Symbolize = p.collect(named)
	}
	p.forms = newForms(o.Values)
	return p
}

// collect returns a function that gives pointers no names, which readers of the addresses
// would not expect there, but adds the names to those of the event.
func (p *jsonPrinter) collect(named func(uint64) (string, uint64, bool)) func(uint64) (string, uint64, bool) {
	return func(addr uint64) (string, uint64, bool) {
		name, offset, ok := named(addr)
		if one := (pointerName{addr, name, offset}); ok && !slices.Contains(p.named, one) {
			p.named = append(p.named, one)
		}
		return "", 0, false
	}
}

func (p *jsonPrinter) Event(ev *runtime.Event) error {
	p.clock()
	if ev.Probe.Find != nil {
		return p.found(ev)
	}
	if len(ev.Ended) > 0 {
		return p.ended(ev)
	}
	if ev.Kind == compiler.WriteEvent {
		return p.write(ev)
	}
	s := p.shape(ev.EventType)
	p.named = p.named[:0]
	if ev.Kind == compiler.RowEvent {
		return p.iterated(ev, s)
	}
	p.by(`{"type":"event","time":`, ev)
	p.text = append(append(p.text, s.head...), `,"call":`...)
	p.hex(ev.Call)
	if ev.Caller != 0 {
		p.text = append(p.text, `,"caller":`...)
		p.hex(ev.Caller)
	}
	if err := p.begun(ev, s); err != nil {
		return err
	}
	n := ev.Begun()
	if err := p.values(ev.Values[n:], s.items[n:], processOf(ev)); err != nil {
		return err
	}
	if err := p.diffs(ev, s.items); err != nil {
		return err
	}
	p.notes(ev.Values[n:], s.items[n:])
	p.text = append(p.text, '}', '\n')
	return nil
}

// by prints when, and in which thread. head is what comes before the time.
func (p *jsonPrinter) by(head string, ev *runtime.Event) {
	p.when(head, ev.Time)
	p.thread(runtime.Begin{CPU: ev.CPU, PID: ev.PID, TID: ev.TID, Comm: ev.Comm})
}

// when prints a time, after head.
func (p *jsonPrinter) when(head string, at time.Duration) {
	p.text = strconv.AppendInt(append(p.text, head...), at.Nanoseconds(), 10)
	p.wall(at)
}

// thread prints a thread and its CPU.
func (p *jsonPrinter) thread(t runtime.Begin) {
	p.text = strconv.AppendInt(append(p.text, `,"cpu":`...), int64(t.CPU), 10)
	p.text = strconv.AppendUint(append(p.text, `,"pid":`...), uint64(t.PID), 10)
	p.text = strconv.AppendUint(append(p.text, `,"tid":`...), uint64(t.TID), 10)
	p.text = btfdump.AppendJSONString(append(p.text, `,"comm":`...), t.Comm)
}

// iterated prints the row of an object of an iterator.
func (p *jsonPrinter) iterated(ev *runtime.Event, s *jsonShape) error {
	p.when(`{"type":"row","time":`, ev.Time)
	p.text = append(p.text, s.head...)
	if err := p.values(ev.Values, s.items, processOf(ev)); err != nil {
		return err
	}
	p.notes(ev.Values, s.items)
	p.text = append(p.text, '}', '\n')
	return nil
}

// begun prints the beginning of a span.
func (p *jsonPrinter) begun(ev *runtime.Event, s *jsonShape) error {
	if s.begin == "" {
		return nil
	}
	p.when(s.begin, ev.Start)
	p.thread(ev.Begin)
	n := ev.Begun()
	if err := p.values(ev.Values[:n], s.items[:n], process{ev.Begin.PID, ev.Start}); err != nil {
		return err
	}
	p.notes(ev.Values[:n], s.items[:n])
	p.named = p.named[:0] // the end names its own
	p.text = append(p.text, '}')
	return nil
}

// values prints the arguments, and the items that are not arguments next to them.
func (p *jsonPrinter) values(values []runtime.Value, items []jsonItem, proc process) error {
	p.text = append(p.text, `,"args":{`...)
	if err := p.members(values, items, true, proc); err != nil {
		return err
	}
	p.text = append(p.text, '}')
	return p.members(values, items, false, proc)
}

func (p *jsonPrinter) members(values []runtime.Value, items []jsonItem, inArgs bool, proc process) error {
	for i := range values {
		if item := &items[i]; item.inArgs == inArgs && !values[i].Hidden && values[i].Was == nil {
			p.key(item.key)
			if err := p.value(&values[i], proc); err != nil {
				return err
			}
		}
	}
	return nil
}

// key begins a member. key is quoted. The comma depends on whether the text ends
// with an opening brace, which no value does.
func (p *jsonPrinter) key(key string) {
	if p.text[len(p.text)-1] != '{' {
		p.text = append(p.text, ',')
	}
	p.text = append(append(p.text, key...), ':')
}

func (p *jsonPrinter) hex(n uint64) {
	p.text = append(appendHex(append(p.text, '"'), n), '"')
}

// notes prints the addresses of values, and which values are cut or could not be
// read.
func (p *jsonPrinter) notes(values []runtime.Value, items []jsonItem) {
	p.containerOf(values)
	start := p.open(`,"pointers":{`)
	for i := range values {
		if v := &values[i]; v.Pointee != nil && v.Fault != compiler.ValueFault && !v.Hidden {
			p.key(items[i].key)
			p.hex(v.Addr)
		}
	}
	p.close(start)
	start = p.open(`,"truncated":{`)
	for i := range values {
		if v := &values[i]; v.Cut && v.Fault == compiler.NoFault && !v.Hidden {
			p.key(items[i].key)
			p.truncated(v)
		}
	}
	p.close(start)
	start = p.open(`,"faults":{`)
	for i := range values {
		v, side := &values[i], ""
		if v.Was != nil {
			if side, v = unreadableDiff(v); v == nil {
				continue
			}
		}
		if v.Fault != compiler.NoFault && !values[i].Hidden {
			p.key(items[i].key)
			p.text = btfdump.AppendJSONString(p.text, []byte(v.Reason()+side))
		}
	}
	p.close(start)
	p.symbolNames()
}

// symbolNames prints what the pointers inside values point to.
func (p *jsonPrinter) symbolNames() {
	start := p.open(`,"symbols":{`)
	for _, n := range p.named {
		p.key(fmt.Sprintf(`"%#x"`, n.addr))
		p.word = append(p.word[:0], n.name...)
		if n.offset != 0 {
			p.word = appendHex(append(p.word, '+'), n.offset)
		}
		p.text = btfdump.AppendJSONString(p.text, p.word)
	}
	p.close(start)
}

// open begins an object that is removed again if it stays empty.
func (p *jsonPrinter) open(text string) (start int) {
	p.text = append(p.text, text...)
	return len(p.text)
}

func (p *jsonPrinter) close(start int) {
	if len(p.text) > start {
		p.text = append(p.text, '}')
		return
	}
	p.text = p.text[:bytes.LastIndexByte(p.text, ',')]
}

// truncated prints how many of how many bytes are shown. The length of a cut string
// is unknown.
func (p *jsonPrinter) truncated(v *runtime.Value) {
	p.text = strconv.AppendInt(append(p.text, `{"shown":`...), int64(len(v.Data)), 10)
	if v.Text == compiler.NoText {
		p.text = strconv.AppendInt(append(p.text, `,"of":`...), int64(v.Full), 10)
	}
	p.text = append(p.text, '}')
}
