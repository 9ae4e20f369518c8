package kprobe

import (
	"errors"
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// ParseFile parses the text of the file called name. Each line is a spec, a
// kprobe_events line, or -:[GROUP/]EVENT, which deletes the earlier lines with this
// event. A line with the event of an earlier line replaces that line. Text after a #
// is a comment. The traces in earlier, from other files, count as earlier lines.
// ParseFile returns all errors, joined, with the name of the file and the number of
// the line.
func ParseFile(name, text string, earlier ...*spec.Trace) ([]*spec.Trace, error) {
	f := &file{slices.Clone(earlier)}
	var errs []error
	from := spec.Source{File: name}
	for line := range strings.Lines(text) {
		from.Line++
		if err := f.line(strings.TrimRight(line, "\r\n"), from); err != nil {
			errs = append(errs, err)
		}
	}
	return f.traces, errors.Join(errs...)
}

// file has the traces of the lines so far.
type file struct{ traces []*spec.Trace }

// line parses a line.
func (f *file) line(line string, from spec.Source) error {
	probe := Is(line)
	// Blanks before the spec stay, as errors have their columns.
	line = strings.TrimRightFunc(uncomment(line, !probe), func(r rune) bool { return r < 0x80 && spec.IsBlank(byte(r)) })
	if line == "" {
		return nil
	}
	err := f.add(line, from, probe)
	var refusal *spec.Error
	if errors.As(err, &refusal) {
		refusal.From = from
		if !probe && refusal.At.Start >= len(strings.TrimSuffix(line, `\`)) {
			refusal.AddHint("a spec ends where its line ends")
		}
	}
	return err
}

// add parses a line that is not empty.
func (f *file) add(line string, from spec.Source, probe bool) error {
	if strings.HasPrefix(strings.TrimLeft(line, " \t\v\f\r"), "-:") {
		return f.delete(line)
	}
	parse := spec.Parse
	if probe {
		parse = Parse
	}
	t, err := parse(line)
	if err != nil {
		return err
	}
	t.From = from
	if probe {
		f.traces = slices.DeleteFunc(f.traces, func(old *spec.Trace) bool {
			return is(old, t.GroupName(), t.EventName())
		})
	}
	f.traces = append(f.traces, t)
	return nil
}

// delete deletes the traces that a line like -:GROUP/EVENT names.
func (f *file) delete(line string) error {
	if err := check(line); err != nil {
		return err
	}
	words := split(line)
	p := &parser{text: line}
	p.open(words[0])
	p.pos += len("-:")
	group, event, err := p.groupEvent()
	if err != nil {
		return err
	}
	if len(words) > 1 {
		return p.errorf(words[1], "%s after the event", spec.Quote(p.word(words[1])))
	}
	before := len(f.traces)
	f.traces = slices.DeleteFunc(f.traces, func(old *spec.Trace) bool { return is(old, group.Name, event.Name) })
	if len(f.traces) == before {
		return f.noEvent(p, group, event)
	}
	return nil
}

// is reports whether a trace is a line with this event. An empty name matches any
// name.
func is(t *spec.Trace, group, event string) bool {
	return t.Line != nil && (group == "" || t.GroupName() == group) && (event == "" || t.EventName() == event)
}

// noEvent returns the error for a line that deletes an event that does not exist.
func (f *file) noEvent(p *parser, group, event spec.Ident) error {
	at := spec.Span{Start: p.pos - len(event.Name), End: p.pos}
	name := event.Name
	if group.Name != "" {
		at.Start = group.At.Start
		name = group.Name + "/" + name
	}
	err := p.errorf(at, "no earlier line has the event %s", spec.Quote(name))
	var events []string
	for _, t := range f.traces {
		if t.Line != nil {
			events = append(events, t.EventName())
		}
	}
	if near, ok := spec.Nearest(event.Name, slices.Values(events)); ok {
		return err.WithMeant("%s", near)
	}
	return err
}

// uncomment removes the comment from a line. A # in a string does not begin one. If
// escapes is true, a backslash in a string escapes a quote.
func uncomment(line string, escapes bool) string {
	var quote byte
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quote == 0 && c == '#':
			return line[:i]
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote != 0 && c == '\\' && escapes:
			i++
		case c == quote:
			quote = 0
		}
	}
	return line
}
