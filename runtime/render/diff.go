package render

import (
	"slices"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// unreadableDiff returns the side of the call at which a value that is compared could
// not be read, with the value, or nil.
func unreadableDiff(v *runtime.Value) (side string, unreadable *runtime.Value) {
	switch {
	case v.Was.Fault != compiler.NoFault && v.Fault != compiler.NoFault:
		return "", v.Was
	case v.Was.Fault != compiler.NoFault:
		return " at entry", v.Was
	case v.Fault != compiler.NoFault:
		return " at return", v
	}
	return "", nil
}

// changes returns what differs of a value that is compared as a whole.
func changes(v *runtime.Value) []btfdump.Change {
	return btfdump.Changes(v.DataType(), v.Was.Data, v.Data)
}

// isPlain reports whether a value that is compared is shown as a whole: a number, or
// what has a format.
func isPlain(v *runtime.Value) bool { return v.Scalar != nil || v.Format != "" }

// samePlain reports whether such a value is the same at both sides.
func samePlain(v *runtime.Value) bool { return slices.Equal(v.Data, v.Was.Data) }

// noDifference is the text of a diff without differences.
const noDifference = "no difference"

// appendChange appends the two states of a part of a value, in C without types.
func appendChange(dst []byte, c btfdump.Change, options btfdump.Options) ([]byte, error) {
	options.Compact, options.SkipNames, options.EmitStrings, options.IndentLevel = true, true, true, 0
	d, err := btfdump.New(c.Type, options)
	if err != nil {
		return dst, err
	}
	dst = d.AppendText(dst, c.Before)
	return d.AppendText(append(dst, " -> "...), c.After), nil
}

// diff prints what differs between the two sides of a call: each part on a line of
// its own.
func (p *printer) diff(v *runtime.Value) error {
	p.blanks(nameIndent)
	p.text = append(append(p.text, v.Name...), " = \n"...)
	side, unreadable := unreadableDiff(v)
	p.blanks(valueIndent)
	switch {
	case unreadable != nil:
		p.text = append(p.text, " /* Cannot show '"...)
		p.text = append(append(append(p.text, v.Was.Name...), "' as '"...), btfdump.TypeName(v.DataType())...)
		p.text = append(append(append(append(append(p.text, '\''), side...), ": "...), unreadable.Reason()...), " */"...)
		return nil
	case isPlain(v) && samePlain(v):
		p.text = append(p.text, "/* "+noDifference+" */"...)
	case isPlain(v):
		return p.plainDiff(v)
	default:
		all := changes(v)
		for i, c := range all {
			if i > 0 {
				p.text = append(p.text, '\n')
				p.blanks(valueIndent)
			}
			var err error
			if p.text, err = appendChange(append(append(p.text, c.Member...), " = "...), c, p.options); err != nil {
				return err
			}
		}
		if len(all) == 0 {
			p.text = append(p.text, "/* "+noDifference+" */"...)
		}
	}
	if v.Cut {
		p.text = append(p.text, '\n')
		p.blanks(valueIndent)
		p.text = append(append(append(p.text, "... /* "...), cutNote(v)...), " */"...)
	}
	return nil
}

// plainDiff prints two numbers, or two values with a format.
func (p *printer) plainDiff(v *runtime.Value) error {
	d := compactPrinter{page: page{text: p.text}, forms: newForms(p.options), names: p.names}
	d.forms.options.Compact, d.forms.options.IndentLevel = true, 0
	p.text = append(d.text, p.form(v.Value).cast...)
	d.text = p.text
	err := d.states(v)
	p.text = d.text
	return err
}

// states prints the two states of a value.
func (p *compactPrinter) states(v *runtime.Value) error {
	if err := p.data(v.Was); err != nil {
		return err
	}
	p.text = append(p.text, " -> "...)
	return p.data(v)
}

// diff prints what differs between the two sides of a call.
func (p *compactPrinter) diff(v *runtime.Value) error {
	side, unreadable := unreadableDiff(v)
	switch {
	case unreadable != nil:
		p.remark(unreadable.Reason() + side)
		return nil
	case isPlain(v) && samePlain(v):
		p.remark(noDifference)
		return nil
	case isPlain(v):
		return p.states(v)
	}
	open := byte('{')
	for _, c := range changes(v) {
		p.text = append(p.text, open)
		if open == ',' {
			p.text = append(p.text, ' ')
		}
		open = ','
		var err error
		if p.text, err = appendChange(append(append(p.text, c.Member...), '='), c, p.options); err != nil {
			return err
		}
	}
	if open == '{' {
		p.remark(noDifference)
	} else {
		p.text = append(p.text, '}')
	}
	if v.Cut {
		p.text = append(p.text, ' ')
		p.remark(cutNote(v))
	}
	return nil
}

// diffs prints the differences of all values that are compared. Of several with one name, as
// with different formats, the second one has the number that its item has.
func (p *jsonPrinter) diffs(ev *runtime.Event, items []jsonItem) error {
	start := p.open(`,"diff":{`)
	for i := range ev.Values {
		v := &ev.Values[i]
		if v.Was == nil || v.Hidden {
			continue
		}
		if _, unreadable := unreadableDiff(v); unreadable != nil {
			continue // it is among the faults
		}
		p.key(jsonName(v.Was.Name + items[i].name[len(v.Name):]))
		p.text = append(p.text, '[')
		if err := p.diff(v); err != nil {
			return err
		}
		p.text = append(p.text, ']')
	}
	p.close(start)
	return nil
}

// diff prints the differences of a value.
func (p *jsonPrinter) diff(v *runtime.Value) error {
	if isPlain(v) && samePlain(v) {
		return nil
	}
	if isPlain(v) {
		p.text = append(p.text, `{"before":`...)
		if err := p.data(v.Was); err != nil {
			return err
		}
		p.text = append(p.text, `,"after":`...)
		err := p.data(v)
		p.text = append(p.text, '}')
		return err
	}
	for i, c := range changes(v) {
		if i > 0 {
			p.text = append(p.text, ',')
		}
		if err := p.change(c); err != nil {
			return err
		}
	}
	return nil
}

// change prints the two states of a part of a value.
func (p *jsonPrinter) change(c btfdump.Change) error {
	d, err := btfdump.New(c.Type, p.options)
	if err != nil {
		return err
	}
	p.text = quoteJSON(append(p.text, `{"member":`...), c.Member)
	p.text = d.AppendJSON(append(p.text, `,"before":`...), c.Before)
	p.text = append(d.AppendJSON(append(p.text, `,"after":`...), c.After), '}')
	return nil
}
