package main

import (
	"fmt"
	"io"
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

// printer turns events into the text that ksnoop is known for.
type printer struct {
	text    []byte
	options btfdump.Options
	symbols *symbols
	dumpers map[*compiler.Value]*btfdump.Dumper
}

// newPrinter is a printer of values that look as options say.
func newPrinter(options btfdump.Options, s *symbols) *printer {
	if options.Compact {
		options.IndentLevel = 0
	} else {
		n := max(1, len(strings.ReplaceAll(options.Indent, "\t", "        ")))
		options.IndentLevel = (valueIndent + n - 1) / n
	}
	return &printer{options: options, symbols: s, dumpers: map[*compiler.Value]*btfdump.Dumper{}}
}

func (p *printer) flush(w io.Writer) error {
	if len(p.text) == 0 {
		return nil
	}
	_, err := w.Write(p.text)
	p.text = p.text[:0]
	if err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	return nil
}

func (p *printer) header() {
	p.printf("%16s %4s %8s %s\n", "TIME", "CPU", "PID", "FUNCTION/ARGS")
}

// event adds the text of an event.
func (p *printer) event(ev *runtime.Event) error {
	p.printf("%16d %4d %8d %*s%s(\n", ev.Time.Nanoseconds(), ev.CPU, ev.PID, depth(ev), "", functionName(ev.Probe.Func))
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
	p.printf("%*s);\n\n", closeIndent, "")
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
	p.indent(nameIndent)
	p.text = append(append(p.text, v.Name...), " = "...)
	if v.Pointee != nil && v.Fault != compiler.ValueFault {
		p.printf("*(%#x)", v.Addr)
	}
	p.text = append(p.text, '\n')
	if v.Fault != compiler.NoFault {
		p.indent(valueIndent + 1)
		p.printf("/* Cannot show '%s' as '%s': %s */", v.Name, btfdump.TypeName(v.Type), v.Reason())
		return nil
	}
	if err := p.data(v); err != nil {
		return err
	}
	if note := remark(v); note != "" {
		p.printf(" /* %s */", note)
	}
	if v.Cut {
		p.text = append(p.text, '\n')
		p.indent(valueIndent)
		p.printf("... /* %s */", cutNote(v))
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
	p.indent(valueIndent)
	text, ok := appendValue(p.text, v, p.symbols.at)
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

// stack prints where the traced function is, then its callers, the innermost
// first.
func (p *printer) stack(data []byte) {
	name := p.symbols.at
	for i := 0; i+8 <= len(data); i += 8 {
		if i > 0 {
			p.text = append(p.text, '\n')
			name = p.symbols.caller
		}
		p.indent(valueIndent)
		addr := unsigned(data[i : i+8])
		if text := name(addr); text != "" {
			p.text = append(p.text, text...)
		} else {
			p.printf("%#x", addr)
		}
	}
}

// dumper is made once for each value.
func (p *printer) dumper(v *compiler.Value) (*btfdump.Dumper, error) {
	if d := p.dumpers[v]; d != nil {
		return d, nil
	}
	d, err := btfdump.New(shownType(v), p.options)
	if err != nil {
		return nil, fmt.Errorf("show '%s': %w", v.Name, err)
	}
	p.dumpers[v] = d
	return d, nil
}

const blanks = "                                                "

func (p *printer) indent(n int) { p.text = append(p.text, blanks[:n]...) }

func (p *printer) printf(format string, args ...any) {
	p.text = fmt.Appendf(p.text, format, args...)
}
