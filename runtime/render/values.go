package render

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// Reading is a value that was read without a call.
type Reading struct {
	runtime.Value
	Before *runtime.Value // what was read the last time, or nil
	CPU    int            // the CPU whose variable it is, or -1
	Time   time.Duration  // CLOCK_MONOTONIC
}

// changed reports whether the value is another one than before.
func (r *Reading) changed() bool {
	v, was := &r.Value, r.Before
	return v.Fault != was.Fault || v.Addr != was.Addr || v.Cut != was.Cut || !bytes.Equal(v.Data, was.Data)
}

// parts returns what differs inside of a structure or an array, or false if the value
// changes as a whole.
func (r *Reading) parts() ([]btfdump.Change, bool) {
	v := &r.Value
	if v.Fault != compiler.NoFault || r.Before.Fault != compiler.NoFault || v.Addr != r.Before.Addr {
		return nil, false
	}
	if isString(v.Value) || v.IsText() || v.Elem != nil || v.Format != "" || v.Scalar != nil && v.Pointee == nil {
		return nil, false
	}
	all := btfdump.Changes(v.DataType(), r.Before.Data, v.Data)
	return all, len(all) > 0 && all[0].Member != ""
}

// part returns the name of a part of the value.
func (r *Reading) part(member string) string {
	switch {
	case member[0] == '[' || member[0] == '(':
		return r.Name + member
	case r.Pointee != nil:
		return r.Name + "->" + member
	}
	return r.Name + "." + member
}

// Values prints values that were read without a call. It keeps the text until Flush.
type Values interface {
	// Value prints a value, or if there is one before it, what has changed since.
	Value(*Reading) error
	Flush(io.Writer) error
}

// NewValues returns a printer in one of the formats. It uses the options as [New] does, but
// its values wait for the names of pointers. It returns an error if the format is none of
// [Formats].
func NewValues(o Options) (Values, error) {
	o.complete()
	if o.Pointers != nil {
		o.Values.Symbolize = o.Pointers.awaited
	}
	switch o.Format {
	case "json":
		return &jsonValues{newJSON(o, nil)}, nil
	case "text", "compact", "":
		whole := o.Values
		whole.IndentLevel = 0
		return &textValues{newCompact(o), newForms(whole), o.Format != "compact"}, nil
	}
	return nil, fmt.Errorf("events cannot be shown as %q", o.Format)
}

// textValues prints values as text, each on lines of its own or on one.
type textValues struct {
	*compactPrinter
	whole forms
	typed bool // with types, and a structure on many lines
}

// Value prints a value with its name, or a line for each part that has changed.
func (p *textValues) Value(r *Reading) error {
	if r.Before == nil {
		p.name(r, r.Name)
		if err := p.state(&r.Value); err != nil {
			return err
		}
		p.text = append(p.text, '\n')
		return nil
	}
	if !r.changed() {
		return nil
	}
	if parts, ok := r.parts(); ok {
		for _, c := range parts {
			p.name(r, r.part(c.Member))
			var err error
			if p.text, err = appendChange(p.text, c, p.options); err != nil {
				return err
			}
			p.text = append(p.text, '\n')
		}
		return nil
	}
	p.name(r, r.Name)
	if err := p.value(r.Before, process{}); err != nil {
		return err
	}
	p.text = append(p.text, " -> "...)
	err := p.value(&r.Value, process{})
	p.text = append(p.text, '\n')
	return err
}

// name begins a line: when something has changed, on which CPU, and what it is.
func (p *textValues) name(r *Reading, name string) {
	if r.Before != nil {
		p.time(r.Time, 16)
	}
	if r.CPU >= 0 {
		p.text = strconv.AppendInt(append(p.text, "CPU "...), int64(r.CPU), 10)
		p.text = append(p.text, ": "...)
	}
	p.text = append(append(p.text, name...), " = "...)
}

// state prints a value, or why it cannot be read.
func (p *textValues) state(v *runtime.Value) error {
	if !p.typed {
		return p.value(v, process{})
	}
	if v.Pointee != nil && v.Fault != compiler.ValueFault {
		p.text = append(appendHex(append(p.text, "*("...), v.Addr), ") "...)
	}
	if v.Fault != compiler.NoFault {
		p.text = fmt.Appendf(p.text, "/* Cannot show '%s' as '%s': %s */", v.Name, btfdump.TypeName(v.Type), v.Reason())
		return nil
	}
	text, ok := appendFormat(append(p.text, p.form(v.Value).cast...), v, &p.names)
	if ok {
		p.text = text
	} else {
		d, err := p.whole.dumper(v.Value)
		if err != nil {
			return err
		}
		p.text = d.AppendText(p.text, v.Data)
	}
	if v.Cut && v.Text != compiler.PathText {
		p.text = append(p.text, ' ')
		p.remark(cutNote(v))
	}
	return nil
}

// jsonValues prints each value as an object on a line.
type jsonValues struct{ *jsonPrinter }

// Value prints a value, and its changes if there is one before it.
func (p *jsonValues) Value(r *Reading) error {
	v := &r.Value
	p.named = p.named[:0]
	p.text = strconv.AppendInt(append(p.text, `{"type":"value","version":`...), jsonVersion, 10)
	p.when(`,"time":`, r.Time)
	if r.CPU >= 0 {
		p.text = strconv.AppendInt(append(p.text, `,"cpu":`...), int64(r.CPU), 10)
	}
	p.text = quoteJSON(append(p.text, `,"name":`...), v.Name)
	p.text = quoteJSON(append(p.text, `,"ctype":`...), btfdump.TypeName(v.Type))
	if v.Format != "" {
		p.text = quoteJSON(append(p.text, `,"format":`...), v.Format)
	}
	if v.Pointee != nil && v.Fault != compiler.ValueFault {
		p.text = append(p.text, `,"pointer":`...)
		p.hex(v.Addr)
	}
	p.text = append(p.text, `,"value":`...)
	if err := p.value(v, process{}); err != nil {
		return err
	}
	if v.Fault != compiler.NoFault {
		p.text = quoteJSON(append(p.text, `,"fault":`...), v.Reason())
	} else if v.Cut {
		p.text = append(p.text, `,"truncated":`...)
		p.truncated(v)
	}
	if err := p.changes(r); err != nil {
		return err
	}
	p.symbolNames()
	p.text = append(p.text, "}\n"...)
	return nil
}

// changes prints the differences from the value before, if there is one.
func (p *jsonValues) changes(r *Reading) error {
	if r.Before == nil {
		return nil
	}
	p.text = append(p.text, `,"changes":[`...)
	parts, ok := r.parts()
	switch {
	case !r.changed():
	case ok:
		for i, c := range parts {
			if i > 0 {
				p.text = append(p.text, ',')
			}
			if err := p.change(c); err != nil {
				return err
			}
		}
	default:
		p.text = append(p.text, `{"member":"","before":`...)
		if err := p.value(r.Before, process{}); err != nil {
			return err
		}
		p.text = append(p.text, `,"after":`...)
		if err := p.value(&r.Value, process{}); err != nil {
			return err
		}
		p.text = append(p.text, '}')
	}
	p.text = append(p.text, ']')
	return nil
}
