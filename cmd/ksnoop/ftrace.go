package main

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime"
)

// ftraceHeader is what the kernel's trace file begins with if it leaves out
// interrupts and preemption.
const ftraceHeader = `# tracer: nop
#
#           TASK-PID     CPU#     TIMESTAMP  FUNCTION
#              | |         |         |         |
`

// lineEvent is what the events of a kprobe_events line have in common.
type lineEvent struct {
	name   string // of the event
	caller int    // of the value that says where the function returns to; -1: none does
	place  string // as in the kernel's parentheses, behind the caller
	args   []lineArg
}

// lineArg is an argument of the line.
type lineArg struct {
	name  string
	index int // of its value in an event, where those of the entry come first; of an array of strings the first one's
	typ   spec.FetchType
}

// isLine says whether an event is one of a kprobe_events line.
func isLine(ev *compiler.Event) bool { return ev.Probe.Trace != nil && ev.Probe.Trace.Probe != nil }

func newLineEvent(ev *compiler.Event, s *symbols) *lineEvent {
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

// fetchedIndex is where the value of an argument is, or the first one of an
// array of strings, which are values of their own; -1: nowhere.
func fetchedIndex(values []*compiler.Value, name string) int {
	return slices.IndexFunc(values, func(v *compiler.Value) bool { return v.Name == name || v.Name == name+"[0]" })
}

// isReturnAddress says whether an argument is where the function returns to.
func isReturnAddress(x spec.Expr) bool {
	if old, ok := x.(*spec.Old); ok {
		x = old.Was
	}
	_, ok := x.(*spec.ReturnAddress)
	return ok
}

// linePlace is where a probe is: "vfs_read+0x0/0x1a0", or of one at return
// "<- vfs_read".
func linePlace(p *compiler.Probe, s *symbols) string {
	switch {
	case p.Trace.Probe.Return:
		return "<- " + p.Func.Symbol
	case p.Func.Tracepoint:
		return p.Func.Name
	}
	return s.codePlace(p.Func, p.Offset)
}

// ftrace adds the line of an event, as in the kernel's trace file.
func (p *printer) ftrace(ev *runtime.Event) {
	line := p.lines[ev.Event]
	if line == nil {
		line = newLineEvent(ev.Event, p.symbols)
		p.lines[ev.Event] = line
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
	p.text = append(p.text, '\n')
}

// task prints the columns of the thread, the processor and the time. As in the
// kernel, the pid is that of the thread.
func (p *printer) task(ev *runtime.Event) {
	p.word = btfdump.AppendString(p.word[:0], ev.Comm)
	name := p.word[1 : len(p.word)-1] // no quotes
	p.blanks(16 - utf8.RuneCount(name))
	p.text = append(append(p.text, name...), '-')
	start := len(p.text)
	p.text = strconv.AppendUint(p.text, uint64(ev.TID), 10)
	p.blanks(7 - (len(p.text) - start))
	p.text = append(p.text, " ["...)
	p.digits(int64(ev.CPU), 3, '0')
	p.text = append(p.text, "] "...)
	p.seconds(ev.Time)
	p.text = append(p.text, ": "...)
}

// digits prints a number at the right of a column, which is filled up.
func (p *page) digits(n int64, width int, fill byte) {
	var digits [20]byte
	text := strconv.AppendInt(digits[:0], n, 10)
	for range width - len(text) {
		p.text = append(p.text, fill)
	}
	p.text = append(p.text, text...)
}
