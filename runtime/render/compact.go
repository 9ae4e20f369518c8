package render

import (
	"bytes"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// compactPrinter prints each event on a line of its own, which a terminal may wrap.
// Values look as in text, on one line and without their own type.
type compactPrinter struct {
	page
	forms
	names
	tables *tablePrinter
}

func newCompact(o Options) *compactPrinter {
	options := o.Values
	options.Compact, options.IndentLevel = true, 0
	return &compactPrinter{page: page{look: o.Look, stacks: o.Stacks}, forms: newForms(options), names: o.names(), tables: newTablePrinter(o)}
}

// arrows mark the side of a call that an event shows.
var arrows = [...]string{compiler.EntryEvent: "-> ", compiler.ReturnEvent: "<- ", compiler.CallEvent: "<> ", compiler.SpanEvent: "", compiler.RowEvent: "", compiler.WriteEvent: ""}

func (p *compactPrinter) begin(unit *compiler.Unit) {
	if onlyWrites(unit) {
		p.header(watchHeader)
		return
	}
	p.header("            TIME  CPU      PID COMM             FUNCTION(ARGS) = RETURN\n")
}

func (p *compactPrinter) Loss(Loss) {}

func (p *compactPrinter) End(Summary) {}

func (p *compactPrinter) Event(ev *runtime.Event) error {
	start := len(p.text)
	if ev.Probe.Find != nil {
		return p.found(ev)
	}
	if len(ev.Ended) > 0 {
		return p.ended(ev)
	}
	if ev.Kind == compiler.WriteEvent {
		return p.writeLine(ev)
	}
	if ev.Kind != compiler.RowEvent { // the thread and the time are ksnoop's
		p.columns(ev)
		p.comm(ev.Comm)
	}
	p.text = append(p.text, arrows[ev.Kind]...)
	p.blanks(depth(ev))
	p.text = append(append(p.text, EventName(ev.EventType)...), '(')
	var result *runtime.Value
	first := true
	for i := range ev.Values {
		v := &ev.Values[i]
		if v.Hidden {
			continue
		}
		if result == nil && i >= ev.Begun() && isReturn(v.Value) {
			result = v
			continue
		}
		if !first {
			p.text = append(p.text, ", "...)
		}
		first = false
		p.text = append(append(p.text, v.Name...), '=')
		if err := p.value(v, originOf(ev, i)); err != nil {
			return err
		}
	}
	p.text = append(p.text, ')')
	if result != nil {
		p.text = append(p.text, " = "...)
		if err := p.value(result, processOf(ev)); err != nil {
			return err
		}
	}
	p.text = append(wrapValues(p.text, start, p.look.Width), '\n')
	return nil
}

// comm prints the name of a thread, escaped, in a column of fixed width.
func (p *compactPrinter) comm(name []byte) {
	start := len(p.text)
	p.text = btfdump.AppendString(p.text, name)
	p.text = append(p.text[:start], p.text[start+1:len(p.text)-1]...) // no quotes
	p.blanks(max(0, 16-columnsOf(string(p.text[start:]))) + 1)
}

// value prints a value, or why it cannot be read. A string is printed without its
// address.
func (p *compactPrinter) value(v *runtime.Value, proc process) error {
	if v.Was != nil {
		return p.diff(v)
	}
	p.pointer(v)
	if v.Fault != compiler.NoFault {
		if v.Fault == compiler.PointeeFault && v.Text == compiler.NoText {
			p.text = append(p.text, ' ')
		}
		p.remark(v.Reason())
		return nil
	}
	if err := p.dataOf(v, proc); err != nil {
		return err
	}
	if note := remark(v); note != "" {
		p.text = append(p.text, ' ')
		p.remark(note)
	}
	if v.Cut && v.Text != compiler.PathText {
		p.text = append(p.text, ' ')
		p.remark(cutNote(v))
	}
	return nil
}

// pointer prints the pointer through which a value was read.
func (p *compactPrinter) pointer(v *runtime.Value) {
	if v.Pointee != nil && v.Fault != compiler.ValueFault && v.Text == compiler.NoText {
		p.text = append(appendHex(append(p.text, "*("...), v.Addr), ')')
	}
}

func (p *compactPrinter) remark(text string) {
	p.text = append(append(append(p.text, "/* "...), text...), " */"...)
}

// dataOf prints what data prints, or a stack of the process.
func (p *compactPrinter) dataOf(v *runtime.Value, proc process) error {
	if v.Base.Builtin == compiler.UserStack {
		p.userStack(v.Data, proc)
		return nil
	}
	return p.data(v)
}

// data prints a value that is not a stack of a process.
func (p *compactPrinter) data(v *runtime.Value) error {
	if v.Base.Builtin == compiler.KernelStack {
		p.stack(v.Data)
		return nil
	}
	text, ok := appendFormat(p.text, v, &p.names)
	if ok {
		p.text = text
		return nil
	}
	d, err := p.dumper(v.Value)
	if err != nil {
		return err
	}
	start := len(p.text)
	p.text = d.AppendText(p.text, v.Data)
	if cast := p.form(v.Value).cast; bytes.HasPrefix(p.text[start:], []byte(cast)) {
		p.text = append(p.text[:start], p.text[start+len(cast):]...)
	}
	return nil
}

func (p *compactPrinter) stack(data []byte) {
	p.text = append(p.text, '[')
	for i := 0; i+8 <= len(data); i += 8 {
		if i > 0 {
			p.text = append(p.text, ", "...)
		}
		p.text = p.symbols.appendFrame(p.text, i/8, unsigned(data[i:i+8]))
	}
	p.text = append(p.text, ']')
}
