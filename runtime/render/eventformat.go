package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// commonFields are the fields of every event of the kernel. They take 8 bytes.
const commonFields = `format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:unsigned char common_flags;	offset:2;	size:1;	signed:0;
	field:unsigned char common_preempt_count;	offset:3;	size:1;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

`

// EventFormat returns the content of the file format in tracefs for the event of a
// kprobe_events line, without the number of the event.
func EventFormat(p *compiler.Probe) string {
	var text strings.Builder
	fmt.Fprintf(&text, "name: %s\n%s", p.Trace.EventName(), commonFields)
	offset := 8
	field := func(typ, name string, size, signed int) {
		fmt.Fprintf(&text, "\tfield:%s %s;\toffset:%d;\tsize:%d;\tsigned:%d;\n", typ, name, offset, size, signed)
		offset += size
	}
	places, print := []string{"__probe_ip"}, "(%lx)"
	switch {
	case showsCaller(p):
		places, print = []string{"__probe_func", compiler.CallerName}, "(%lx <- %lx)"
	case p.Trace.Line.Return:
		places, print = []string{"__probe_func"}, "(<- %lx)"
	}
	args := ""
	for _, name := range places {
		field("unsigned long", name, 8, 0)
		args += ", REC->" + name
	}
	for _, f := range formatFields(p) {
		name := f.name
		if f.typ.Count > 0 && !f.typ.IsText() {
			name += "[]" // the kernel leaves the length out from 6.1 on
		}
		typ, size, signed := f.declared()
		field(typ, name, size, signed)
		print += " " + f.name + "=" + f.verbs()
		args += f.records()
	}
	fmt.Fprintf(&text, "\nprint fmt: \"%s\"%s\n", print, args)
	return text.String()
}

// showsCaller reports whether events have the return address, which those of an f lack.
func showsCaller(p *compiler.Probe) bool {
	isCaller := func(i *spec.Item) bool { return isReturnAddress(i.Value) }
	return fetchedIndex(slices.Concat(p.Entry, p.Return), compiler.CallerName) >= 0 || slices.ContainsFunc(p.Trace.Items, isCaller)
}

// formatField is an argument of a line.
type formatField struct {
	name string
	typ  spec.FetchType
}

// formatFields returns the arguments in the order of the line.
func formatFields(p *compiler.Probe) []formatField {
	values := slices.Concat(p.Entry, p.Return)
	var fields []formatField
	for i, name := range p.Trace.ItemNames() {
		v := values[fetchedIndex(values, name)]
		fields = append(fields, formatField{name, fetchType(p.Trace.Items[i], v)})
	}
	return fields
}

// declared returns the type of the field in C, its size in bytes, and 1 if it is
// signed. For strings the event has the offset and the length.
func (f formatField) declared() (typ string, size, signed int) {
	n := max(1, f.typ.Count)
	if f.typ.IsText() {
		typ = "__data_loc char[]"
		if f.typ.Count > 0 {
			typ += fmt.Sprintf("[%d]", f.typ.Count)
		}
		return typ, 4 * n, 1
	}
	width, isSigned := f.typ.Bits()
	if f.typ.Name == "" {
		width = f.typ.Field.Container
	}
	if isSigned {
		return fmt.Sprintf("s%d", width), width / 8 * n, 1
	}
	return fmt.Sprintf("u%d", width), width / 8 * n, 0
}

// verbs returns the printf verbs with which the kernel prints the field.
func (f formatField) verbs() string {
	verb := f.verb()
	if f.typ.Count == 0 {
		return verb
	}
	return "{" + strings.Repeat(verb+",", f.typ.Count-1) + verb + "}"
}

func (f formatField) verb() string {
	switch {
	case f.typ.Name == "char":
		return "'%c'"
	case f.typ.Name == "symbol":
		return "%pS"
	case f.typ.IsText():
		return `\"%s\"`
	}
	width, signed := f.typ.Bits()
	verb, long := "u", ""
	switch {
	case strings.HasPrefix(f.typ.Name, "x"):
		verb = "x"
	case signed:
		verb = "d"
	}
	if f.typ.Name == "" {
		width = f.typ.Field.Container
	}
	if width == 64 {
		long = "L"
	}
	prefix := strings.Repeat("0x", strings.Count(verb, "x"))
	return prefix + "%" + long + verb
}

// records returns the arguments of the verbs.
func (f formatField) records() string {
	one := ", REC->" + f.name
	if f.typ.IsText() {
		one = ", __get_str(" + f.name
	}
	text := ""
	for i := range max(1, f.typ.Count) {
		text += one
		if f.typ.Count > 0 {
			text += fmt.Sprintf("[%d]", i)
		}
		if f.typ.IsText() {
			text += ")"
		}
	}
	return text
}
