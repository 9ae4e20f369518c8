package render

import (
	"cmp"
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

// printer prints events as ksnoop's traditional text, and events of kprobe_events
// lines as in the kernel's trace file.
type printer struct {
	page
	forms
	names
	headers string
	tables  *tablePrinter
	lined   *ftracePrinter // prints what takes a single line in this format, too
}

// newPrinter returns a printer of a unit's events as text.
func newPrinter(o Options, unit *compiler.Unit) *printer {
	options := o.Values
	options.Indent = cmp.Or(options.Indent, " ")
	if options.Compact {
		options.IndentLevel = 0
	} else {
		n := len(strings.ReplaceAll(options.Indent, "\t", "        "))
		options.IndentLevel = (valueIndent + n - 1) / n
	}
	return &printer{page: page{look: o.Look, stacks: o.Stacks}, forms: newForms(options), names: o.names(), tables: newTablePrinter(o), headers: headers(unit), lined: newFtrace(o)}
}

// headers returns the headings of the styles that a unit's events have.
func headers(unit *compiler.Unit) string {
	if onlyWrites(unit) {
		return watchHeader
	}
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

func (p *printer) Loss(Loss) {}

func (p *printer) End(Summary) {}

// Event adds the text of an event.
func (p *printer) Event(ev *runtime.Event) error {
	if isLine(ev.EventType) {
		return p.asLine(func(f *ftracePrinter) error { return f.Event(ev) })
	}
	if ev.Probe.Find != nil || len(ev.Ended) > 0 {
		return p.asLine(func(f *ftracePrinter) error { return f.compactPrinter.Event(ev) })
	}
	if ev.Kind == compiler.WriteEvent {
		return p.write(ev)
	}
	if ev.Kind == compiler.RowEvent { // the thread and the time are ksnoop's
		p.blanks(closeIndent)
	} else {
		p.columns(ev)
	}
	p.blanks(depth(ev))
	p.text = append(append(p.text, EventName(ev.EventType)...), "(\n"...)
	shown := 0
	for i := range ev.Values {
		if ev.Values[i].Hidden {
			continue
		}
		if shown++; shown > 1 {
			p.text = append(p.text, ",\n"...)
		}
		if err := p.value(&ev.Values[i], originOf(ev, i)); err != nil {
			return err
		}
	}
	if shown > 0 {
		p.text = append(p.text, '\n')
	}
	p.blanks(closeIndent)
	p.text = append(p.text, ");\n\n"...)
	return nil
}

// depth returns the indentation of a function's name: in a chain, a call is
// indented further than its caller.
func depth(ev *runtime.Event) int {
	if ev.Probe.Chain == nil {
		return 0
	}
	return 2 * ev.Probe.Chain.Level
}

// FunctionName returns the name of a function, tracepoint or iterator, as a spec writes
// it.
func FunctionName(fn *compiler.Function) string {
	switch {
	case fn.Tracepoint:
		return "tp:" + fn.Name
	case fn.Iterator:
		return "iter:" + fn.Name
	}
	return fn.Name
}

// EventName returns the name of the function of an event, or the names of both points
// of a span.
func EventName(ev *compiler.EventType) string {
	if ev.Kind == compiler.SpanEvent {
		return FunctionName(ev.Probe.Span.Begin.Func) + " => " + FunctionName(ev.Probe.Func)
	}
	return FunctionName(ev.Probe.Func)
}

func (p *printer) value(v *runtime.Value, proc process) error {
	if v.Was != nil {
		return p.diff(v)
	}
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
	if err := p.dataOf(v, proc); err != nil {
		return err
	}
	if note := remark(v); note != "" {
		p.text = fmt.Appendf(p.text, " /* %s */", note)
	}
	if v.Cut && v.Text != compiler.PathText { // a path says so itself
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

// dataOf prints what data prints, or a stack of the process.
func (p *printer) dataOf(v *runtime.Value, proc process) error {
	if v.Base.Builtin == compiler.UserStack {
		p.userStack(v.Data, proc)
		return nil
	}
	return p.data(v)
}

// data prints a value that is not a stack of a process.
func (p *printer) data(v *runtime.Value) error {
	if v.Base.Builtin == compiler.KernelStack {
		p.stack(v.Data)
		return nil
	}
	start := len(p.text)
	p.blanks(valueIndent)
	text, ok := appendFormat(append(p.text, p.form(v.Value).cast...), v, &p.names)
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

// stack prints each address on a line of its own.
func (p *printer) stack(data []byte) {
	for i := 0; i+8 <= len(data); i += 8 {
		if i > 0 {
			p.text = append(p.text, '\n')
		}
		p.blanks(valueIndent)
		p.text = p.symbols.appendFrame(p.text, i/8, unsigned(data[i:i+8]))
	}
}

// columns prints the columns before the name of the function.
func (p *page) columns(ev *runtime.Event) {
	p.time(ev.Time, 16)
	p.column(int64(ev.CPU), 4)
	p.column(int64(ev.PID), 8)
}

// column prints a number right-aligned in a column, and a blank.
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
