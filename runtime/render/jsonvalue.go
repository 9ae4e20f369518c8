package render

import (
	"bytes"
	"strconv"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// value prints what data prints, or a stack of the process.
func (p *jsonPrinter) value(v *runtime.Value, proc process) error {
	if v.Base.Builtin == compiler.UserStack && v.Fault == compiler.NoFault {
		p.userStack(v.Data, proc)
		return nil
	}
	return p.data(v)
}

// data prints a value that is not a stack of a process: a plain number as a number, a
// value with another format as the string that the text format shows, and null for a
// value that could not be read.
func (p *jsonPrinter) data(v *runtime.Value) error {
	switch {
	case v.Fault != compiler.NoFault:
		p.text = append(p.text, "null"...)
	case v.Base.Builtin == compiler.KernelStack:
		p.stack(v.Data)
	case isString(v.Value):
		p.text = btfdump.AppendJSONString(p.text, v.Data)
	case v.Elem != nil:
		return p.elements(v)
	case v.Format == compiler.ContainerFormat:
		p.text = quoteJSON(p.text, p.container(v.Uint64()).String())
	case v.Format == "d", v.Format == "u":
		p.text, _ = appendFormat(p.text, v, nil)
	default:
		return p.quotedOrPlain(v)
	}
	return nil
}

// elements prints an array element by element.
func (p *jsonPrinter) elements(v *runtime.Value) error {
	p.text = append(p.text, '[')
	for i, e := range v.Elements() {
		if i > 0 {
			p.text = append(p.text, ',')
		}
		if err := p.data(&e); err != nil {
			return err
		}
	}
	p.text = append(p.text, ']')
	return nil
}

func (p *jsonPrinter) quotedOrPlain(v *runtime.Value) error {
	word, ok := appendFormat(p.word[:0], v, &p.names)
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

// jsonShape holds what the events of one type share.
type jsonShape struct {
	head  string // from after the thread's name up to before the call
	begin string // of a span, up to before the time of its beginning
	items []jsonItem
}

// jsonItem is the place of an item in the JSON of an event. The return value and the
// duration are members of their own, next to the arguments.
type jsonItem struct {
	name   string // as in the spec; unique in the event
	key    string // of its member, quoted
	inArgs bool
}

func (p *jsonPrinter) shape(ev *compiler.EventType) *jsonShape {
	s := p.shapes[ev]
	if s == nil {
		s = newJSONShape(ev)
		p.shapes[ev] = s
	}
	return s
}

func newJSONShape(ev *compiler.EventType) *jsonShape {
	head := appendFunction([]byte(","), ev.Probe.Func)
	head = quoteJSON(append(head, `,"kind":`...), ev.Kind.String())
	if isLine(ev) {
		head = quoteJSON(append(head, `,"group":`...), ev.Probe.Trace.GroupName())
		head = quoteJSON(append(head, `,"event":`...), ev.Probe.Trace.EventName())
	}
	s := &jsonShape{head: string(head)}
	n := ev.Begun()
	if ev.Kind == compiler.SpanEvent {
		s.begin = string(append(appendFunction([]byte(`,"begin":{`), ev.Probe.Span.Begin.Func), `,"time":`...))
	}
	s.items = append(newJSONItems(ev.Items[:n]), newJSONItems(ev.Items[n:])...)
	return s
}

// appendFunction appends the name of a function and its module as members.
func appendFunction(dst []byte, fn *compiler.Function) []byte {
	dst = quoteJSON(append(dst, `"func":`...), FunctionName(fn))
	if fn.Module != "" {
		dst = quoteJSON(append(dst, `,"module":`...), fn.Module)
	}
	return dst
}

// newJSONItems names items. If items have the same name the second gets a number,
// as members do in btfdump; so does one whose name is taken.
func newJSONItems(values []*compiler.Value, taken ...string) []jsonItem {
	items := make([]jsonItem, len(values))
	names, beside := map[string]bool{}, map[string]bool{}
	for _, name := range taken {
		names[name] = true
	}
	for i, v := range values {
		if v.Hidden {
			continue
		}
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

// besideArgs returns the member of an item that has one of its own, or "".
func besideArgs(v *compiler.Value) string {
	switch {
	case isReturn(v):
		return "return"
	case v.Base.Builtin == compiler.Duration && v.Format == "":
		return "duration"
	}
	return ""
}

// quoteJSON appends text as a JSON string. It is not inlined, as it has many callers.
//
//go:noinline
func quoteJSON(dst []byte, text string) []byte { return btfdump.AppendJSONString(dst, []byte(text)) }
