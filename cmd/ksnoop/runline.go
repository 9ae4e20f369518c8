package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
)

// jsonVersion changes when a reader of docs/json.md would misunderstand a line.
const jsonVersion = 1

// begin prints the first line of JSON: what is traced, and where. encoding/json
// would make the binary larger by 0.25 MB.
func (p *jsonPrinter) begin() {
	p.text = strconv.AppendInt(append(p.text, `{"type":"run","version":`...), jsonVersion, 10)
	p.member("ksnoop", buildVersion())
	p.member("kernel", p.kernel)
	p.text = append(p.text, `,"probes":[`...)
	attached := attachKinds(p.unit)
	for i, ev := range p.unit.Events {
		p.comma(i)
		p.text = append(p.text, '{')
		p.probe(newProbeName(ev, attached[ev.Probe]))
		p.text = append(p.text, `,"items":[`...)
		p.items(ev)
		p.text = append(p.text, "]}"...)
	}
	p.text = append(p.text, "]}\n"...)
}

func (p *jsonPrinter) items(ev *compiler.Event) {
	for i, item := range newJSONItems(ev.Items) {
		v := ev.Items[i]
		p.comma(i)
		p.text = append(p.text, '{')
		p.member("name", item.name)
		p.member("type", btfdump.TypeName(v.Type))
		if v.Format != "" {
			p.member("format", v.Format)
		}
		p.text = append(p.text, '}')
	}
}

// member prints a member whose value is a string.
func (p *jsonPrinter) member(name, value string) {
	p.key(`"` + name + `"`)
	p.text = quoteJSON(p.text, value)
}

// comma stands before each element but the first.
func (p *jsonPrinter) comma(i int) {
	if i > 0 {
		p.text = append(p.text, ',')
	}
}

// probeName says which kind of event is meant.
type probeName struct {
	Func   string
	Module string // "" is vmlinux
	Kind   string // entry, return or call
	Attach string // kinds, entry first, with + between
	// Group and Event are those of a kprobe_events line.
	Group, Event string
}

// newProbeName names an event and the kinds of the programs that make it, of
// those that its function has.
func newProbeName(ev *compiler.Event, attached []string) probeName {
	switch last := len(attached) - 1; {
	case last < 1:
	case ev.Kind == compiler.EntryEvent:
		attached = attached[:1]
	case ev.Kind == compiler.ReturnEvent && !ev.Probe.Stash && ev.Probe.Chain == nil:
		attached = attached[last:]
	}
	fn := ev.Probe.Func
	name := probeName{Func: functionName(fn), Module: fn.Module, Kind: sides[ev.Kind], Attach: strings.Join(attached, "+")}
	if isLine(ev) {
		name.Group, name.Event = ev.Probe.Trace.GroupName(), ev.Probe.Trace.EventName()
	}
	return name
}

func (n probeName) attachedBy(kind compiler.Kind) bool {
	return slices.Contains(strings.Split(n.Attach, "+"), string(kind))
}

// probe prints the members that say which kind of event is meant.
func (p *jsonPrinter) probe(n probeName) {
	p.member("func", n.Func)
	if n.Module != "" {
		p.member("module", n.Module)
	}
	p.member("kind", n.Kind)
	p.member("attach", n.Attach)
	if n.Event != "" {
		p.member("group", n.Group)
		p.member("event", n.Event)
	}
}
