package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/cilium/ebpf/btf"

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
	dumpers map[*compiler.Value]*btfdump.Dumper
}

// newPrinter is a printer of values that look as options say.
func newPrinter(options btfdump.Options) *printer {
	if options.Compact {
		options.IndentLevel = 0
	} else {
		n := max(1, len(strings.ReplaceAll(options.Indent, "\t", "        ")))
		options.IndentLevel = (valueIndent + n - 1) / n
	}
	return &printer{options: options, dumpers: map[*compiler.Value]*btfdump.Dumper{}}
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
	p.printf("%16d %4d %8d %s(\n", ev.Time.Nanoseconds(), ev.CPU, ev.PID, ev.Probe.Func.Name)
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
	if v.Cut {
		p.text = append(p.text, '\n')
		p.indent(valueIndent)
		p.printf("... /* %s */", cutNote(v))
	}
	return nil
}

func cutNote(v *runtime.Value) string {
	if v.String {
		return fmt.Sprintf("%d bytes of a longer string", len(v.Data))
	}
	return fmt.Sprintf("%d bytes of %d", len(v.Data), v.Full)
}

func (p *printer) data(v *runtime.Value) error {
	if v.String {
		p.indent(valueIndent)
		p.text = append(p.text, "(char *)"...)
		p.text = btfdump.AppendString(p.text, v.Data)
		return nil
	}
	d, err := p.dumper(v.Value)
	if err != nil {
		return err
	}
	if p.options.Compact {
		p.indent(valueIndent)
	}
	p.text = d.AppendText(p.text, v.Data)
	return nil
}

// dumper is made once for each value.
func (p *printer) dumper(v *compiler.Value) (*btfdump.Dumper, error) {
	if d := p.dumpers[v]; d != nil {
		return d, nil
	}
	var t btf.Type = v.Type
	if v.Pointee != nil {
		t = v.Pointee
	}
	d, err := btfdump.New(t, p.options)
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
