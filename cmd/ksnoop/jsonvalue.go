package main

import (
	"bytes"
	"strconv"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// value prints numbers as numbers, what has another format as the string that
// text shows, and null for what could not be read.
func (p *jsonPrinter) value(v *runtime.Value) error {
	switch {
	case v.Fault != compiler.NoFault:
		p.text = append(p.text, "null"...)
	case v.Base.Builtin == compiler.KernelStack:
		p.stack(v.Data)
	case isString(v.Value):
		p.text = btfdump.AppendJSONString(p.text, v.Data)
	case v.Elem != nil:
		return p.elements(v)
	case v.Format == "d", v.Format == "u":
		p.text, _ = appendFormat(p.text, v, nil)
	default:
		return p.quotedOrPlain(v)
	}
	return nil
}

// elements prints an array whose elements are shown one by one.
func (p *jsonPrinter) elements(v *runtime.Value) error {
	p.text = append(p.text, '[')
	for i, e := range v.Elements() {
		if i > 0 {
			p.text = append(p.text, ',')
		}
		if err := p.value(&e); err != nil {
			return err
		}
	}
	p.text = append(p.text, ']')
	return nil
}

func (p *jsonPrinter) quotedOrPlain(v *runtime.Value) error {
	word, ok := appendFormat(p.word[:0], v, p.symbols.at)
	p.word = word
	if ok {
		if v.Format == "c" {
			word = bytes.TrimPrefix(bytes.TrimSuffix(word, []byte("'")), []byte("'"))
		}
		p.text = btfdump.AppendJSONString(p.text, word)
		return nil
	}
	d, err := p.dumper(v.Value)
	if err != nil {
		return err
	}
	p.text = d.AppendJSON(p.text, v.Data)
	return nil
}

func (p *jsonPrinter) stack(data []byte) {
	p.text = append(p.text, '[')
	for i := 0; i+8 <= len(data); i += 8 {
		if i > 0 {
			p.text = append(p.text, ',')
		}
		p.word = p.symbols.appendFrame(p.word[:0], i/8, unsigned(data[i:i+8]))
		p.text = btfdump.AppendJSONString(p.text, p.word)
	}
	p.text = append(p.text, ']')
}

// jsonShape is what the events of one kind have in common.
type jsonShape struct {
	head  string // from behind the thread's name up to the call
	items []jsonItem
}

// jsonItem is where an item is in an event. The item that is the return value,
// and the one that is the duration, stand beside the others.
type jsonItem struct {
	name   string // as in the spec; no two are the same
	key    string // of its member, in quotes
	inArgs bool
}

func (p *jsonPrinter) shape(ev *compiler.Event) *jsonShape {
	s := p.shapes[ev]
	if s == nil {
		s = newJSONShape(ev)
		p.shapes[ev] = s
	}
	return s
}

func newJSONShape(ev *compiler.Event) *jsonShape {
	fn := ev.Probe.Func
	head := quoteJSON([]byte(`,"func":`), functionName(fn))
	if fn.Module != "" {
		head = quoteJSON(append(head, `,"module":`...), fn.Module)
	}
	head = quoteJSON(append(head, `,"kind":`...), sides[ev.Kind])
	if isLine(ev) {
		head = quoteJSON(append(head, `,"group":`...), ev.Probe.Trace.GroupName())
		head = quoteJSON(append(head, `,"event":`...), ev.Probe.Trace.EventName())
	}
	return &jsonShape{head: string(append(head, `,"call":`...)), items: newJSONItems(ev.Items)}
}

// sides are what part of a call an event shows.
var sides = [...]string{compiler.EntryEvent: "entry", compiler.ReturnEvent: "return", compiler.CallEvent: "call"}

// newJSONItems names items. Of items with one name the second gets a number, as
// members do in btfdump.
func newJSONItems(values []*compiler.Value) []jsonItem {
	items := make([]jsonItem, len(values))
	names, beside := map[string]bool{}, map[string]bool{}
	for i, v := range values {
		item := &items[i]
		item.name = v.Name
		for n := 2; names[item.name]; n++ {
			item.name = v.Name + "#" + strconv.Itoa(n)
		}
		names[item.name] = true
		member := besideArgs(v)
		item.inArgs = member == "" || beside[member]
		beside[member] = true
		if item.inArgs {
			member = item.name
		}
		item.key = string(quoteJSON(nil, member))
	}
	return items
}

// besideArgs is the member that an item has to itself; "": none.
func besideArgs(v *compiler.Value) string {
	switch {
	case isReturn(v):
		return "return"
	case v.Base.Builtin == compiler.Duration && v.Format == "":
		return "duration"
	}
	return ""
}

func quoteJSON(dst []byte, text string) []byte { return btfdump.AppendJSONString(dst, []byte(text)) }
