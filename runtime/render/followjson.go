package render

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// The lines of JSON of a command that follows objects, besides those of calls. They
// are described in docs/follow.md.
type (
	followRunLine struct {
		jsonRun
		Object    btfdump.JSONString `json:"object"`
		Functions int                `json:"functions"`
		Show      []jsonItemLine     `json:"show"`
	}
	followObjectLine struct {
		Type    string             `json:"type"`
		Object  string             `json:"object"`
		Address string             `json:"address"`
		Parent  string             `json:"parent,omitempty"`
		Time    int64              `json:"time"`
		Wall    string             `json:"wall,omitempty"`
		Took    int64              `json:"duration"`
		Calls   int                `json:"calls"`
		End     btfdump.JSONString `json:"end,omitempty"`
		Path    []jsonStep         `json:"path"`
	}
	jsonStep struct {
		Func  btfdump.JSONString `json:"func"`
		Since int64              `json:"since"`
	}
	followSummaryLine struct {
		Type       string `json:"type"`
		Objects    uint64 `json:"objects"`
		Shown      uint64 `json:"shown"`
		Lost       uint64 `json:"lost"`
		NoRoom     uint64 `json:"noroom"`
		Unreadable uint64 `json:"unreadable"`
		Missed     uint64 `json:"missed"`
	}
)

// followJSON prints one JSON object on each line.
type followJSON struct {
	jsonPrinter
	journal
	members map[string]string // of the values to show, by valueName: their names, which differ
}

func newFollowJSON(o Options, unit *compiler.Unit) *followJSON {
	p := &followJSON{*newJSON(o, unit), journal{objects: map[uint64]*followed{}}, map[string]string{}}
	functions := map[*compiler.Function]bool{}
	for _, ev := range unit.Events {
		functions[ev.Probe.Func] = true
	}
	start := unit.Events[0]
	head := followRunLine{p.run(), btfdump.JSONString(btfdump.TypeName(start.Probe.Follow.Type)), len(functions), []jsonItemLine{}}
	for i, item := range newJSONItems(start.Items) {
		v := start.Items[i]
		p.members[valueName(v)] = cmp.Or(p.members[valueName(v)], item.name)
		head.Show = append(head.Show, jsonItemLine{btfdump.JSONString(item.name), btfdump.JSONString(btfdump.TypeName(v.Type)), v.Format})
	}
	p.text = AppendJSON(p.text, head)
	return p
}

// Event adds the line of a call.
func (p *followJSON) Event(ev *runtime.Event) error {
	p.clock()
	l := p.add(ev)
	what := "call"
	switch {
	case l.begins:
		what = "begin"
	case ev.Probe.Follow.Ending():
		what = "end"
	}
	p.when(`{"type":"`+what+`","time":`, ev.Time)
	p.text = strconv.AppendInt(append(p.text, `,"delta":`...), l.delta.Nanoseconds(), 10)
	p.thread(runtime.Begin{CPU: ev.CPU, PID: ev.PID, TID: ev.TID, Comm: ev.Comm})
	p.text = quoteJSON(append(p.text, `,"object":`...), l.name)
	p.text = append(p.text, `,"address":`...)
	p.hex(l.addr)
	p.text = appendFunction(append(p.text, ','), ev.Probe.Func)
	p.text = quoteJSON(append(p.text, `,"arg":`...), argumentName(ev.Probe))
	if l.begins && l.parent != "" {
		p.text = quoteJSON(append(p.text, `,"parent":`...), l.parent)
	}
	if err := p.changed(&l, processOf(ev)); err != nil {
		return err
	}
	for i, v := range []*runtime.Value{l.stack, l.place} {
		if v == nil {
			continue
		}
		p.text = append(p.text, []string{`,"stack":`, `,"place":`}[i]...)
		if err := p.value(v, processOf(ev)); err != nil {
			return err
		}
	}
	p.text = append(p.text, '}', '\n')
	return nil
}

// changed prints the values that have changed, what they were, and why some could not
// be read.
func (p *followJSON) changed(l *line, proc process) error {
	parts := []struct {
		key  string
		show func(c change) (*runtime.Value, process)
	}{
		{`,"values":{`, func(c change) (*runtime.Value, process) { return c.Value, proc }},
		{`,"was":{`, func(c change) (*runtime.Value, process) { return c.was, c.wasOf }},
	}
	for _, part := range parts {
		start := p.open(part.key)
		for _, c := range l.changes {
			if v, of := part.show(c); v != nil {
				p.key(p.member(c))
				if err := p.value(v, of); err != nil {
					return err
				}
			}
		}
		p.close(start)
	}
	start := p.open(`,"faults":{`)
	for _, c := range l.changes {
		if c.Fault != compiler.NoFault {
			p.key(p.member(c))
			p.text = btfdump.AppendJSONString(p.text, []byte(c.Reason()))
		}
	}
	p.close(start)
	return nil
}

// member returns the name of a value that has changed, quoted.
func (p *followJSON) member(c change) string {
	return string(quoteJSON(nil, cmp.Or(p.members[valueName(c.Value.Value)], c.Name)))
}

// Loss prints nothing: the last line has all losses.
func (p *followJSON) Loss(Loss) {}

// End adds a line with the path of each object, and the counts.
func (p *followJSON) End(s Summary) {
	for _, o := range p.paths() {
		l := followObjectLine{
			Type: "object", Object: o.name, Address: fmt.Sprintf("%#x", o.addr), Parent: o.parent, Time: o.began.Nanoseconds(), Wall: p.wallText(o.began),
			Took: (o.last - o.began).Nanoseconds(), Calls: o.calls, End: btfdump.JSONString(o.end), Path: []jsonStep{},
		}
		for _, s := range o.path {
			l.Path = append(l.Path, jsonStep{btfdump.JSONString(s.function), s.at.Nanoseconds()})
		}
		p.text = AppendJSON(p.text, l)
	}
	sum := followSummaryLine{Type: "summary", Objects: max(p.newest, s.Objects)}
	add := func(to *uint64, n *uint64) {
		if n != nil {
			*to += *n
		}
	}
	for _, probe := range s.Probes {
		add(&sum.Shown, probe.Delivered)
		add(&sum.Lost, probe.Lost)
		add(&sum.NoRoom, probe.NoRoom)
		add(&sum.Unreadable, probe.Unreadable)
		add(&sum.Missed, probe.Missed)
	}
	for _, shared := range s.Shared {
		sum.Missed += shared.Missed
	}
	p.text = AppendJSON(p.text, sum)
}
