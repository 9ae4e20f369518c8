package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// Indentation of the text, in blanks.
const (
	nameIndent  = 35
	valueIndent = nameIndent + 1
	closeIndent = 31
)

// printer turns events into the text that ksnoop is known for, and those of
// kprobe_events lines into that of the kernel's trace file.
type printer struct {
	page
	forms
	symbols *symbols
	headers string
	lines   map[*compiler.Event]*lineEvent
	word    []byte // scratch for the name of a thread
}

// newPrinter is a printer of the events of a unit, with values that look as
// options say.
func newPrinter(options btfdump.Options, unit *compiler.Unit, s *symbols) *printer {
	if options.Compact {
		options.IndentLevel = 0
	} else {
		n := max(1, len(strings.ReplaceAll(options.Indent, "\t", "        ")))
		options.IndentLevel = (valueIndent + n - 1) / n
	}
	return &printer{forms: newForms(options), symbols: s, headers: headers(unit), lines: map[*compiler.Event]*lineEvent{}}
}

// headers are those of the styles that a unit's events have.
func headers(unit *compiler.Unit) string {
	lines := 0
	for _, ev := range unit.Events {
		if isLine(ev) {
			lines++
		}
	}
	text := ""
	if lines == 0 || lines < len(unit.Events) {
		text = "            TIME  CPU      PID FUNCTION/ARGS\n"
	}
	if lines > 0 {
		text += ftraceHeader
	}
	return text
}

func (p *printer) begin() { p.header(p.headers) }

func (p *printer) loss(loss) {}

func (p *printer) end(summary) {}

// event adds the text of an event.
func (p *printer) event(ev *runtime.Event) error {
	if isLine(ev.Event) {
		p.ftrace(ev)
		return nil
	}
	p.columns(ev)
	p.blanks(depth(ev))
	p.text = append(append(p.text, functionName(ev.Probe.Func)...), "(\n"...)
	for i := range ev.Values {
		if i > 0 {
			p.text = append(p.text, ",\n"...)
		}
		if err := p.value(&ev.Values[i]); err != nil {
			return err
		}
	}
	if len(ev.Values) > 0 {
		p.text = append(p.text, '\n')
	}
	p.blanks(closeIndent)
	p.text = append(p.text, ");\n\n"...)
	return nil
}

// depth is by how much the name of a function is indented: in a stack, a call
// stands further right than the one that it is inside of.
func depth(ev *runtime.Event) int {
	if ev.Probe.Chain == nil {
		return 0
	}
	return 2 * ev.Probe.Chain.Level
}

// functionName is how a function, or tracepoint, is called in a spec.
func functionName(fn *compiler.Function) string {
	if fn.Tracepoint {
		return "tp:" + fn.Name
	}
	return fn.Name
}

func (p *printer) value(v *runtime.Value) error {
	p.blanks(nameIndent)
	p.text = append(append(p.text, v.Name...), " = "...)
	if v.Pointee != nil && v.Fault != compiler.ValueFault {
		p.text = append(appendHex(append(p.text, "*("...), v.Addr), ')')
	}
	p.text = append(p.text, '\n')
	if v.Fault != compiler.NoFault {
		p.blanks(valueIndent + 1)
		p.text = fmt.Appendf(p.text, "/* Cannot show '%s' as '%s': %s */", v.Name, btfdump.TypeName(v.Type), v.Reason())
		return nil
	}
	if err := p.data(v); err != nil {
		return err
	}
	if note := remark(v); note != "" {
		p.text = fmt.Appendf(p.text, " /* %s */", note)
	}
	if v.Cut {
		p.text = append(p.text, '\n')
		p.blanks(valueIndent)
		p.text = fmt.Appendf(p.text, "... /* %s */", cutNote(v))
	}
	return nil
}

func cutNote(v *runtime.Value) string {
	if v.Text != compiler.NoText {
		return fmt.Sprintf("%d bytes of a longer string", len(v.Data))
	}
	return fmt.Sprintf("%d bytes of %d", len(v.Data), v.Full)
}

func (p *printer) data(v *runtime.Value) error {
	if v.Base.Builtin == compiler.KernelStack {
		p.stack(v.Data)
		return nil
	}
	start := len(p.text)
	p.blanks(valueIndent)
	text, ok := appendFormat(append(p.text, p.form(v.Value).cast...), v, p.symbols.at)
	if ok {
		p.text = text
		return nil
	}
	if !p.options.Compact { // a dumper indents by itself
		p.text = p.text[:start]
	}
	d, err := p.dumper(v.Value)
	if err != nil {
		return err
	}
	p.text = d.AppendText(p.text, v.Data)
	return nil
}

// stack prints an address on each line.
func (p *printer) stack(data []byte) {
	for i := 0; i+8 <= len(data); i += 8 {
		if i > 0 {
			p.text = append(p.text, '\n')
		}
		p.blanks(valueIndent)
		p.text = p.symbols.appendFrame(p.text, i/8, unsigned(data[i:i+8]))
	}
}

// columns prints what stands before the name of the function.
func (p *page) columns(ev *runtime.Event) {
	p.time(ev.Time, 16)
	p.column(int64(ev.CPU), 4)
	p.column(int64(ev.PID), 8)
}

// column prints a number at the right of a column, and a blank.
func (p *page) column(n int64, width int) {
	var digits [20]byte
	text := strconv.AppendInt(digits[:0], n, 10)
	p.blanks(width - len(text))
	p.text = append(append(p.text, text...), ' ')
}

const blanks = "                                                "

func (p *page) blanks(n int) {
	for ; n > len(blanks); n -= len(blanks) {
		p.text = append(p.text, blanks...)
	}
	p.text = append(p.text, blanks[:max(n, 0)]...)
}
