package main

import (
	"bytes"
	"strconv"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// jsonPrinter prints one JSON object a line, as docs/json.md says.
type jsonPrinter struct {
	page
	forms
	symbols *symbols
	unit    *compiler.Unit
	kernel  string // its release
	shapes  map[*compiler.Event]*jsonShape
	word    []byte // scratch for a value that is to be quoted
}

func newJSON(options btfdump.Options, unit *compiler.Unit, s *symbols, kernel string) *jsonPrinter {
	return &jsonPrinter{
		forms: newForms(options), symbols: s, unit: unit, kernel: kernel,
		shapes: map[*compiler.Event]*jsonShape{},
	}
}

func (p *jsonPrinter) event(ev *runtime.Event) error {
	s := p.shape(ev.Event)
	p.text = strconv.AppendInt(append(p.text, `{"type":"event","time":`...), ev.Time.Nanoseconds(), 10)
	p.text = strconv.AppendInt(append(p.text, `,"cpu":`...), int64(ev.CPU), 10)
	p.text = strconv.AppendUint(append(p.text, `,"pid":`...), uint64(ev.PID), 10)
	p.text = strconv.AppendUint(append(p.text, `,"tid":`...), uint64(ev.TID), 10)
	p.text = btfdump.AppendJSONString(append(p.text, `,"comm":`...), ev.Comm)
	p.text = append(p.text, s.head...)
	p.hex(ev.Call)
	if ev.Caller != 0 {
		p.text = append(p.text, `,"caller":`...)
		p.hex(ev.Caller)
	}
	if err := p.values(ev, s); err != nil {
		return err
	}
	p.notes(ev, s)
	p.text = append(p.text, '}', '\n')
	return nil
}

// values prints the arguments, and what is no argument beside them.
func (p *jsonPrinter) values(ev *runtime.Event, s *jsonShape) error {
	p.text = append(p.text, `,"args":{`...)
	if err := p.members(ev, s, true); err != nil {
		return err
	}
	p.text = append(p.text, '}')
	return p.members(ev, s, false)
}

func (p *jsonPrinter) members(ev *runtime.Event, s *jsonShape, inArgs bool) error {
	for i := range ev.Values {
		if item := &s.items[i]; item.inArgs == inArgs {
			p.key(item.key)
			if err := p.value(&ev.Values[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// key begins a member, whose name is in quotes. No value ends with a brace that
// opens.
func (p *jsonPrinter) key(key string) {
	if p.text[len(p.text)-1] != '{' {
		p.text = append(p.text, ',')
	}
	p.text = append(append(p.text, key...), ':')
}

func (p *jsonPrinter) hex(n uint64) {
	p.text = append(appendHex(append(p.text, '"'), n), '"')
}

// notes says of values where they are in memory, what is cut and what could not
// be read.
func (p *jsonPrinter) notes(ev *runtime.Event, s *jsonShape) {
	start := p.open(`,"pointers":{`)
	for i := range ev.Values {
		if v := &ev.Values[i]; v.Pointee != nil && v.Fault != compiler.ValueFault {
			p.key(s.items[i].key)
			p.hex(v.Addr)
		}
	}
	p.close(start)
	start = p.open(`,"truncated":{`)
	for i := range ev.Values {
		if v := &ev.Values[i]; v.Cut && v.Fault == compiler.NoFault {
			p.key(s.items[i].key)
			p.truncated(v)
		}
	}
	p.close(start)
	start = p.open(`,"faults":{`)
	for i := range ev.Values {
		if v := &ev.Values[i]; v.Fault != compiler.NoFault {
			p.key(s.items[i].key)
			p.text = btfdump.AppendJSONString(p.text, []byte(v.Reason()))
		}
	}
	p.close(start)
}

// open begins an object that is left out if nothing comes.
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

// truncated prints of how many bytes how many are shown. Nobody knows how long a
// string is.
func (p *jsonPrinter) truncated(v *runtime.Value) {
	p.text = strconv.AppendInt(append(p.text, `{"shown":`...), int64(len(v.Data)), 10)
	if v.Text == compiler.NoText {
		p.text = strconv.AppendInt(append(p.text, `,"of":`...), int64(v.Full), 10)
	}
	p.text = append(p.text, '}')
}
