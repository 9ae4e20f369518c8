package render

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
	"github.com/ksnoop/ksnoop/runtime"
)

// ftraceHeader is the beginning of the kernel's trace file without the columns for
// interrupts and preemption.
const ftraceHeader = `# tracer: nop
#
#           TASK-PID     CPU#     TIMESTAMP  FUNCTION
#              | |         |         |         |
`

// ftracePrinter prints each event as a line of the kernel's trace file, and everything
// else as a comment.
type ftracePrinter struct {
	compactPrinter
	lines map[*compiler.EventType]*lineEvent
	word  []byte // scratch buffer for the name of a thread
}

func newFtrace(o Options) *ftracePrinter {
	return &ftracePrinter{compactPrinter: *newCompact(o), lines: map[*compiler.EventType]*lineEvent{}}
}

// lineEvent holds what all events of a kprobe_events line, or of a kind of a spec,
// share.
type lineEvent struct {
	name   string // of the event
	caller int    // index of the value with the function's return address, or -1
	place  string // as the kernel prints it in parentheses, after the caller
	args   []lineArg
}

// lineArg is an argument of the line.
type lineArg struct {
	name  string
	index int // of its value in an event, counted from the entry values; for an array of strings, of the first one
	typ   spec.FetchType
}

// isLine reports whether an event is one of a kprobe_events line.
func isLine(ev *compiler.EventType) bool { return ev.Probe.Trace != nil && ev.Probe.Trace.Line != nil }

func newLineEvent(ev *compiler.EventType, s *Symbols) *lineEvent {
	trace := ev.Probe.Trace
	line := &lineEvent{name: trace.EventName(), caller: fetchedIndex(ev.Items, compiler.CallerName), place: linePlace(ev.Probe, s)}
	for i, name := range trace.ItemNames() {
		index := fetchedIndex(ev.Items, name)
		if index < 0 {
			continue
		}
		if isReturnAddress(trace.Items[i].Value) {
			line.caller = index
		}
		line.args = append(line.args, lineArg{name, index, fetchType(trace.Items[i], ev.Items[index])})
	}
	return line
}

// fetchedIndex returns the index of an argument's value, or of the first one of an
// array of strings, which are separate values. It returns -1 if there is none.
func fetchedIndex(values []*compiler.Value, name string) int {
	return slices.IndexFunc(values, func(v *compiler.Value) bool { return v.Name == name || v.Name == name+"[0]" })
}

// isReturnAddress reports whether an argument is the function's return address.
func isReturnAddress(x spec.Expr) bool {
	if old, ok := x.(*spec.Old); ok {
		x = old.Was
	}
	_, ok := x.(*spec.ReturnAddress)
	return ok
}

// linePlace returns the place of a probe: "vfs_read+0x0/0x1a0", or for one at
// return "<- vfs_read".
func linePlace(p *compiler.Probe, s *Symbols) string {
	switch {
	case p.Trace.Line.Return:
		return "<- " + p.Func.Symbol
	case p.Func.Tracepoint:
		return p.Func.Name
	}
	return s.codePlace(p.Func, p.Offset)
}

// Event adds the line of an event, as in the kernel's trace file.
func (p *ftracePrinter) Event(ev *runtime.Event) error {
	line := p.lines[ev.EventType]
	if line == nil {
		if line = newSpecEvent(ev.EventType); isLine(ev.EventType) {
			line = newLineEvent(ev.EventType, p.symbols)
		}
		p.lines[ev.EventType] = line
	}
	p.task(ev)
	p.text = append(append(p.text, line.name...), ": ("...)
	if line.caller >= 0 && ev.Values[line.caller].Fault == compiler.NoFault {
		p.text = append(p.symbols.appendSized(p.text, unsigned(ev.Values[line.caller].Data)), ' ')
	}
	p.text = append(append(p.text, line.place...), ')')
	for i := range line.args {
		arg := &line.args[i]
		p.text = append(append(append(p.text, ' '), arg.name...), '=')
		p.text = appendFetched(p.text, ev.Values[arg.index:], &arg.typ, p.symbols)
	}
	for i := range ev.Values {
		if v := &ev.Values[i]; !isLine(ev.EventType) && !v.Hidden {
			p.text = append(append(append(p.text, ' '), v.Name...), '=')
			if err := p.field(v, originOf(ev, i)); err != nil {
				return err
			}
		}
	}
	p.text = append(p.text, '\n')
	return nil
}

// suffixes tell the kinds of a function's events apart. Those of an entry and a return
// have the names that the kernel gives its own.
var suffixes = [...]string{compiler.EntryEvent: "__entry", compiler.ReturnEvent: "__exit", compiler.CallEvent: "", compiler.SpanEvent: "__span", compiler.RowEvent: ""}

// newSpecEvent returns what the lines of a spec's event begin with.
func newSpecEvent(ev *compiler.EventType) *lineEvent {
	fn := ev.Probe.Func
	line := &lineEvent{name: fn.Name + suffixes[ev.Kind], caller: -1, place: EventName(ev)}
	switch {
	case fn.Tracepoint || fn.Iterator || ev.Kind == compiler.SpanEvent:
	case ev.Kind == compiler.EntryEvent:
		line.place = sizedPlace(kallsyms.Symbol{Name: fn.Symbol, Module: fn.Module}, 0, 0)
	default:
		line.place = "<- " + fn.Symbol
	}
	if fn.Tracepoint {
		line.name = fn.Name
	}
	return line
}

// field prints a value of a spec as compact output does, and what it cannot show as the
// kernel does.
func (p *ftracePrinter) field(v *runtime.Value, proc process) error {
	if v.Was != nil {
		return p.diff(v)
	}
	p.pointer(v)
	if v.Fault != compiler.NoFault {
		p.text = append(p.text, "(fault)"...)
		return nil
	}
	err := p.dataOf(v, proc)
	if v.Cut && v.Text != compiler.PathText {
		p.text = append(p.text, "..."...)
	}
	return err
}

// Table adds a table as comments.
func (p *ftracePrinter) Table(t *runtime.Table) error {
	text, err := p.tables.text(t, max(0, p.look.Width-2), " until "+p.moment(t.Time))
	text = bytes.ReplaceAll(bytes.TrimSpace(text), []byte("\n"), []byte("\n# "))
	p.text = append(append(append(p.text, "# "...), text...), '\n')
	return err
}

// moment returns a time for a comment: the time of day, or seconds of CLOCK_MONOTONIC.
func (p *ftracePrinter) moment(at time.Duration) string {
	if p.look.Time == Wall {
		return string(appendClock(nil, p.wallTime(at)))
	}
	return string(appendSeconds(nil, at, 6))
}

// Again separates the objects of iterators from those before.
func (p *ftracePrinter) Again() { p.text = append(p.text, "#\n"...) }

// Loss adds what was lost so far as a comment.
func (p *ftracePrinter) Loss(l Loss) {
	p.losses(p.moment(l.Time), Summary{Probes: []ProbeSummary{l.ProbeSummary}, Shared: l.Shared})
}

// End adds what was lost as comments.
func (p *ftracePrinter) End(s Summary) { p.losses("end", s) }

// losses adds a comment for each event type of which something was lost.
func (p *ftracePrinter) losses(when string, s Summary) {
	for i := range s.Probes {
		n := &s.Probes[i]
		line := ""
		for _, l := range []struct {
			name string
			n    *uint64
		}{{"lost", n.Lost}, {"missed", n.Missed}, {"no room", n.NoRoom}, {"unreadable", n.Unreadable}, {"unpaired", n.Unpaired}, {"limited", n.Limited}} {
			if l.n != nil && *l.n > 0 {
				line += fmt.Sprintf(" %d %s", *l.n, l.name)
			}
		}
		if line != "" {
			p.text = fmt.Appendf(p.text, "# %s: %s (%s):%s\n", when, PlainName(n.Func), n.Kind, line)
		}
	}
	for i := range s.Shared {
		p.text = fmt.Appendf(p.text, "# %s: %s\n", when, &s.Shared[i])
	}
}

// task prints the columns of the thread, the processor and the time. As in the
// kernel, the pid is that of the thread.
func (p *ftracePrinter) task(ev *runtime.Event) {
	p.word = btfdump.AppendString(p.word[:0], ev.Comm)
	name := p.word[1 : len(p.word)-1] // no quotes
	p.blanks(16 - columnsOf(string(name)))
	p.text = append(append(p.text, name...), '-')
	start := len(p.text)
	p.text = strconv.AppendUint(p.text, uint64(ev.TID), 10)
	p.blanks(7 - (len(p.text) - start))
	p.text = append(p.text, " ["...)
	p.text = append(appendDigits(p.text, ev.CPU, 3), "] "...)
	p.seconds(ev.Time)
	p.text = append(p.text, ": "...)
}

// fetchType returns the type that the kernel would give to an argument of a
// kprobe_events line: the written one, or its default.
func fetchType(item *spec.Item, v *compiler.Value) spec.FetchType {
	switch t := item.Type; {
	case t != nil && strings.HasPrefix(t.Name, "%"):
		return spec.FetchType{Name: "string"}
	case t != nil:
		return *t
	case v.IsText():
		return spec.FetchType{Name: "string"}
	}
	return spec.FetchType{Name: v.Format}
}

// appendFetched appends an argument as the kernel prints it: the first of the
// values, or for an array of strings as many values as it has elements.
func appendFetched(dst []byte, values []runtime.Value, t *spec.FetchType, s *Symbols) []byte {
	switch {
	case t.Count == 0:
		return appendOne(dst, &values[0], t, s)
	case t.IsText():
		for i := range values[:min(t.Count, len(values))] {
			dst = appendOne(append(dst, "{,"[min(i, 1)]), &values[i], t, s)
		}
		return append(dst, '}')
	}
	return appendArray(dst, &values[0], t, s)
}

func appendOne(dst []byte, v *runtime.Value, t *spec.FetchType, s *Symbols) []byte {
	if v.Fault != compiler.NoFault {
		return append(dst, "(fault)"...)
	}
	dst = appendElement(dst, v.Data, t, s)
	if v.Cut {
		dst = append(dst, "..."...)
	}
	return dst
}

// appendArray appends an array of numbers. For bitfields it appends the numbers
// that contain them.
func appendArray(dst []byte, v *runtime.Value, t *spec.FetchType, s *Symbols) []byte {
	if v.Fault != compiler.NoFault {
		return append(dst, "(fault)"...)
	}
	dst = append(dst, '{')
	size := max(1, v.Full/t.Count)
	for i := 0; i+size <= len(v.Data); i += size {
		if i > 0 {
			dst = append(dst, ',')
		}
		if f := t.Field; t.Name == "" {
			dst = strconv.AppendUint(dst, unsigned(v.Data[i:i+size])>>f.Offset&(1<<f.Width-1), 10)
		} else {
			dst = appendElement(dst, v.Data[i:i+size], t, s)
		}
	}
	if v.Cut {
		dst = append(dst, ",..."...)
	}
	return append(dst, '}')
}

// appendElement appends a value that is not an array, or an element of an array.
func appendElement(dst, data []byte, t *spec.FetchType, s *Symbols) []byte {
	switch t.Name {
	case "symbol":
		return s.appendSized(dst, unsigned(data))
	case "symstr":
		return append(s.appendSized(append(dst, '"'), unsigned(data)), '"')
	case "char":
		return appendCharacter(dst, data)
	case "x8", "x16", "x32", "x64":
		return appendHex(dst, unsigned(data))
	case "s8", "s16", "s32", "s64":
		return strconv.AppendInt(dst, signed(data), 10)
	}
	if t.IsText() {
		return btfdump.AppendString(dst, data)
	}
	return strconv.AppendUint(dst, unsigned(data), 10)
}
