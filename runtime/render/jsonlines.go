package render

import (
	"bytes"
	"encoding/json"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
)

// jsonVersion changes when a reader of docs/json.md would misunderstand a line.
const jsonVersion = 1

// The lines of JSON that are not events.
type (
	runLine struct {
		jsonRun
		Probes []jsonProbe `json:"probes"`
	}
	lossLine struct {
		Type string `json:"type"`
		Time int64  `json:"time"`
		Wall string `json:"wall,omitempty"`
		*jsonProbe
		Shared []jsonShared `json:"shared,omitempty"`
	}
	summaryLine struct {
		Type   string       `json:"type"`
		Probes []jsonProbe  `json:"probes"`
		Shared []jsonShared `json:"shared,omitempty"`
	}
)

// jsonProbe is an event type, with its items or with its counts.
type jsonProbe struct {
	Func   btfdump.JSONString `json:"func"`
	Module btfdump.JSONString `json:"module,omitempty"`
	Kind   string             `json:"kind"`
	Attach string             `json:"attach"`
	Group  btfdump.JSONString `json:"group,omitempty"`
	Event  btfdump.JSONString `json:"event,omitempty"`
	Items  *[]jsonItemLine    `json:"items,omitempty"`
	Counts
}

type jsonItemLine struct {
	Name   btfdump.JSONString `json:"name"`
	Type   btfdump.JSONString `json:"type"`
	Format string             `json:"format,omitempty"`
}

type jsonShared struct {
	Attach string               `json:"attach"`
	Funcs  []btfdump.JSONString `json:"funcs"`
	Missed uint64               `json:"missed"`
}

func newJSONProbe(n ProbeName, c Counts) jsonProbe {
	return jsonProbe{
		Func: btfdump.JSONString(n.Func), Module: btfdump.JSONString(n.Module), Kind: n.Kind, Attach: n.Attach,
		Group: btfdump.JSONString(n.Group), Event: btfdump.JSONString(n.Event), Counts: c,
	}
}

// begin prints the first line of JSON: what is traced, and on which system.
func (p *jsonPrinter) begin() {
	line := runLine{p.run(), []jsonProbe{}}
	attached := AttachKinds(p.unit)
	for _, ev := range p.unit.Events {
		items := []jsonItemLine{}
		values := ev.Items[ev.Begun():]
		if ev.Kind == compiler.BeginEvent {
			values = ev.Probe.Items()
		}
		if ev.Kind == compiler.WriteEvent {
			values = values[:1] // the others are in every write
		}
		for i, item := range newJSONItems(values) {
			v := values[i]
			if v.Hidden {
				continue
			}
			items = append(items, jsonItemLine{btfdump.JSONString(item.name), btfdump.JSONString(btfdump.TypeName(v.Type)), v.Format})
		}
		probe := newJSONProbe(newProbeName(ev, attached[ev.Probe]), Counts{})
		probe.Items = &items
		line.Probes = append(line.Probes, probe)
	}
	p.text = AppendJSON(p.text, line)
}

// Loss adds a line for a new loss.
func (p *jsonPrinter) Loss(l Loss) {
	p.clock()
	line := lossLine{Type: "loss", Time: l.Time.Nanoseconds(), Wall: p.wallText(l.Time), Shared: newJSONShared(l.Shared)}
	if l.Shared == nil {
		probe := newJSONProbe(l.ProbeName, l.Counts)
		line.jsonProbe = &probe
	}
	p.text = AppendJSON(p.text, line)
}

// End adds the last line: the counts.
func (p *jsonPrinter) End(s Summary) {
	line := summaryLine{Type: "summary", Probes: []jsonProbe{}}
	for _, probe := range s.Probes {
		line.Probes = append(line.Probes, newJSONProbe(probe.ProbeName, probe.Counts))
	}
	line.Shared = newJSONShared(s.Shared)
	p.text = AppendJSON(p.text, line)
}

func newJSONShared(all []SharedMissed) (lines []jsonShared) {
	for _, shared := range all {
		funcs := make([]btfdump.JSONString, len(shared.Funcs))
		for i, name := range shared.Funcs {
			funcs[i] = btfdump.JSONString(name)
		}
		lines = append(lines, jsonShared{shared.Attach, funcs, shared.Missed})
	}
	return lines
}

// AppendJSON appends a Go value as JSON, on a line of its own. Strings from
// elsewhere must be of type [btfdump.JSONString], so that none holds control
// characters that a terminal would obey.
func AppendJSON(dst []byte, v any) []byte {
	b := bytes.NewBuffer(dst)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("encode JSON: " + err.Error()) // only this program's types are encoded
	}
	return b.Bytes()
}
