package listing

import (
	"maps"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// unitObject is all that specs compile to, as JSON.
type unitObject struct {
	Type      string          `json:"type"` // unit
	Version   int             `json:"version"`
	Functions []choiceObject  `json:"functions"`
	Events    []recordObject  `json:"events"`
	Maps      []mapObject     `json:"maps"`
	Programs  []programObject `json:"programs"`
}

// choiceObject is how a function is attached, and why so.
type choiceObject struct {
	Func   btfdump.JSONString `json:"func"`
	Module btfdump.JSONString `json:"module,omitempty"`
	Attach string             `json:"attach"`
	Reason btfdump.JSONString `json:"reason"`
}

// recordObject is an event with the parts of its record, or with what is measured in
// place of events.
type recordObject struct {
	Func    btfdump.JSONString `json:"func"`
	Kind    string             `json:"kind"`
	Size    int                `json:"size,omitempty"` // with strings, at most
	Parts   []partObject       `json:"parts,omitempty"`
	Measure string             `json:"measure,omitempty"`
}

type partObject struct {
	Offset int                `json:"offset"`
	Size   int                `json:"size"`
	Name   btfdump.JSONString `json:"name"`
	Type   btfdump.JSONString `json:"type"`
	Note   string             `json:"note,omitempty"`
}

type mapObject struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Key     uint32 `json:"key"` // bytes
	Value   uint32 `json:"value"`
	Entries uint32 `json:"entries"` // of a ring buffer: bytes
}

type programObject struct {
	Name         string               `json:"name"`
	Functions    []btfdump.JSONString `json:"functions"`
	Instructions []instructionObject  `json:"instructions"`
}

// instructionObject is an instruction. Its offset is that of the verifier's log: some
// take two.
type instructionObject struct {
	Offset int                `json:"offset"`
	Label  string             `json:"label,omitempty"`
	Step   btfdump.JSONString `json:"step,omitempty"` // what it and those after it are for
	Text   string             `json:"text"`
}

func newUnitObject(unit *compiler.Unit) *unitObject {
	o := &unitObject{Type: "unit", Version: jsonVersion, Maps: []mapObject{}}
	kinds := render.AttachKinds(unit)
	for _, p := range unit.Probes() {
		name := render.FunctionName(p.Func)
		o.Functions = append(o.Functions, choiceObject{
			btfdump.JSONString(name), btfdump.JSONString(p.Func.Module), strings.Join(kinds[p], "+"), btfdump.JSONString(p.Attach.Reason),
		})
	}
	for _, ev := range unit.Events {
		o.Events = append(o.Events, newRecordObject(ev))
	}
	for _, name := range slices.Sorted(maps.Keys(unit.Collection.Maps)) {
		m := unit.Collection.Maps[name]
		one := mapObject{Name: name, Type: m.Type.String(), Entries: m.MaxEntries}
		if m.Type != ebpf.RingBuf {
			one.Key, one.Value = m.KeySize, m.ValueSize
		}
		o.Maps = append(o.Maps, one)
	}
	places := placeNames(unit)
	for _, name := range programNames(unit) {
		one := programObject{Name: name, Functions: []btfdump.JSONString{}, Instructions: instructionObjects(unit.Collection.Programs[name].Instructions)}
		for _, at := range places[name] {
			one.Functions = append(one.Functions, btfdump.JSONString(at))
		}
		o.Programs = append(o.Programs, one)
	}
	return o
}

func newRecordObject(ev *compiler.EventType) recordObject {
	o := recordObject{Func: btfdump.JSONString(render.FunctionName(ev.Probe.Func)), Kind: ev.Kind.String()}
	if m := ev.Probe.Measure; m != compiler.NoMeasure {
		o.Measure = m.String()
		return o
	}
	if ev.Kind == compiler.BeginEvent { // it has no record
		return o
	}
	o.Size = ev.Layout.Size
	for _, p := range layoutParts(ev) {
		o.Parts = append(o.Parts, partObject{p.off, p.size, btfdump.JSONString(p.name), btfdump.JSONString(p.typ), p.note})
	}
	return o
}

func instructionObjects(insns asm.Instructions) []instructionObject {
	all := []instructionObject{}
	for it := insns.Iterate(); it.Next(); {
		one := instructionObject{Offset: int(it.Offset), Label: it.Ins.Symbol(), Text: instructionText(*it.Ins)}
		if step := it.Ins.Source(); step != nil {
			one.Step = btfdump.JSONString(step.String())
		}
		all = append(all, one)
	}
	return all
}
