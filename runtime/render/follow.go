package render

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/userstack"
)

// Limits of what is kept for the paths at the end.
const (
	mostPaths = 64  // objects: the latest
	mostSteps = 256 // functions of an object: the first
)

// follows reports whether a unit follows objects.
func follows(unit *compiler.Unit) bool {
	return len(unit.Events) > 0 && unit.Events[0].Probe.Follow != nil
}

// followed describes an object that is followed.
type followed struct {
	name        string // a, b, ... z, aa, ...
	addr        uint64
	parent      string // the name of the object that it is made of, or ""
	began, last time.Duration
	values      []lastValue
	calls       int
	path        []step // of the first mostSteps calls
	end         string // the function that ended it, or "" if it has not ended
}

// step is a call that had an object.
type step struct {
	function string
	at       time.Duration // since the object began
}

// lastValue is a value as it was shown last.
type lastValue struct {
	name string
	runtime.Value
	process
}

// same reports whether a value in a process has not changed.
func (l *lastValue) same(v *runtime.Value, proc process) bool {
	other := l.pid != proc.pid && v.Base.Builtin == compiler.UserStack && userstack.HasAddresses(v.Data)
	return l.Fault == v.Fault && l.Addr == v.Addr && bytes.Equal(l.Data, v.Data) && !other
}

// journal keeps the objects that are followed.
type journal struct {
	objects map[uint64]*followed // the latest, by their number
	newest  uint64               // number of the latest object
	dropped int                  // objects whose paths are not kept
}

// change is a value to show: it has changed since the object's last line, or was not
// shown before.
type change struct {
	*runtime.Value
	was   *runtime.Value // nil if it was not shown before
	wasOf process
}

// line holds the columns of one event.
type line struct {
	*followed
	begins  bool
	delta   time.Duration // since the object's last line
	changes []change
	stack   *runtime.Value // or nil
	place   *runtime.Value // from where memory was freed, or nil
}

// objectName returns the name of the n-th object: a to z, then aa, ab, ...
func objectName(n uint64) string {
	var name []byte
	for ; n > 0; n = (n - 1) / 26 {
		name = append(name, 'a'+byte((n-1)%26))
	}
	slices.Reverse(name)
	return string(name)
}

// add adds an event to its object.
func (j *journal) add(ev *runtime.Event) line {
	o, known := j.objects[ev.Object.Number]
	if !known {
		o = &followed{name: objectName(ev.Object.Number), addr: ev.Object.Addr, began: ev.Time, last: ev.Time}
		j.objects[ev.Object.Number] = o
		j.newest = max(j.newest, ev.Object.Number)
		j.trim()
	}
	role := ev.Probe.Follow.Role
	l := line{followed: o, begins: !known && (role == compiler.Starts || role == compiler.Joins), delta: ev.Time - o.last}
	o.last = ev.Time
	if o.calls++; len(o.path) < mostSteps {
		o.path = append(o.path, step{FunctionName(ev.Probe.Func), ev.Time - o.began})
	}
	if ev.Probe.Follow.Ending() {
		o.end = FunctionName(ev.Probe.Func)
	}
	for i := range ev.Values {
		switch v := &ev.Values[i]; {
		case v.Hidden:
			o.parent = j.latest(v.Uint64(), ev.Object.Number)
		case v.Base.Builtin == compiler.KernelStack:
			l.stack = v
		case v.Name == compiler.FreedBy:
			l.place = v
		default:
			l.compare(v, processOf(ev))
		}
	}
	return l
}

// trim drops the oldest object that is no longer followed, if there are too many: one that
// has ended or, if its end is missing, one of more than the kernel follows at a time.
func (j *journal) trim() {
	if len(j.objects) <= mostPaths {
		return
	}
	unended := 0
	for _, o := range j.objects {
		if o.end == "" {
			unended++
		}
	}
	oldest := j.newest
	for number, o := range j.objects {
		if o.end != "" || unended > compiler.MostObjects {
			oldest = min(oldest, number)
		}
	}
	delete(j.objects, oldest)
	j.dropped++
}

// latest returns the name of the latest object before the n-th one that had an
// address, or "".
func (j *journal) latest(addr, n uint64) string {
	best := uint64(0)
	for number, o := range j.objects {
		if o.addr == addr && number < n {
			best = max(best, number)
		}
	}
	return objectName(best)
}

// valueName tells the values to show apart: by their text and their format.
func valueName(v *compiler.Value) string { return v.Name + ":" + v.Format }

// compare adds a value to the changes of a line if it is one, and keeps it.
func (l *line) compare(v *runtime.Value, proc process) {
	name := valueName(v.Value)
	i := slices.IndexFunc(l.values, func(old lastValue) bool { return old.name == name })
	if i >= 0 && l.values[i].same(v, proc) {
		return
	}
	kept := *v
	kept.Data = slices.Clone(v.Data)
	c := change{Value: v}
	if i < 0 {
		l.values = append(l.values, lastValue{name, kept, proc})
	} else {
		was := l.values[i]
		c.was, c.wasOf = &was.Value, was.process
		l.values[i] = lastValue{name, kept, proc}
	}
	l.changes = append(l.changes, c)
}

// paths returns the objects in the order of their beginning.
func (j *journal) paths() []*followed {
	return slices.SortedFunc(maps.Values(j.objects), func(a, b *followed) int {
		return cmp.Or(cmp.Compare(len(a.name), len(b.name)), cmp.Compare(a.name, b.name))
	})
}

// argumentName returns the name of the argument, or value, that is the object.
func argumentName(p *compiler.Probe) string {
	if p.Follow.Role == compiler.Joins {
		return "return"
	}
	if o := p.Follow.Object; p.Follow.Role != compiler.Starts && o.Base.Param != nil {
		return o.Base.Param.Name
	} else {
		return o.Name
	}
}

// followText prints each call that has an object on a line.
type followText struct {
	compactPrinter
	journal
	oneLine bool // whether the stack is on the line, too
}

func newFollowText(o Options, oneLine bool) *followText {
	p := &followText{*newCompact(o), journal{objects: map[uint64]*followed{}}, oneLine}
	p.header("            TIME        DELTA  CPU      PID COMM             OBJECT FUNCTION(ARGUMENT) VALUES\n")
	return p
}

// Event adds the line of an event.
func (p *followText) Event(ev *runtime.Event) error {
	l := p.add(ev)
	start := len(p.text)
	p.time(ev.Time, 16)
	var room [32]byte
	delta := appendSeconds(room[:0], l.delta, 9)
	p.blanks(12 - len(delta))
	p.text = append(append(p.text, delta...), ' ')
	p.column(int64(ev.CPU), 4)
	p.column(int64(ev.PID), 8)
	p.comm(ev.Comm)
	p.text = append(p.text, l.name...)
	p.blanks(7 - len(l.name))
	p.text = append(append(p.text, FunctionName(ev.Probe.Func)...), '(')
	p.text = append(append(p.text, argumentName(ev.Probe)...), ')')
	if err := p.what(&l, ev); err != nil {
		return err
	}
	p.text = append(wrapValues(p.text, start, p.look.Width), '\n')
	if l.stack != nil && !p.oneLine {
		for i := 0; i+8 <= len(l.stack.Data); i += 8 {
			p.blanks(nameIndent)
			p.text = append(p.symbols.appendFrame(p.text, i/8, unsigned(l.stack.Data[i:i+8])), '\n')
		}
	}
	return nil
}

// what prints the end of a line, behind its call: whether the object begins or ends
// there, and the values that have changed.
func (p *followText) what(l *line, ev *runtime.Event) error {
	if l.begins {
		p.text = appendHex(append(p.text, " begins at "...), l.addr)
	}
	if l.begins && l.parent != "" {
		p.text = append(append(p.text, ", made of "...), l.parent...)
	}
	if ev.Probe.Follow.Ending() {
		p.text = append(p.text, " ends"...)
	}
	if l.place != nil {
		p.text = append(p.text, ", freed by "...)
		if err := p.value(l.place, processOf(ev)); err != nil {
			return err
		}
	}
	for i, c := range l.changes {
		if p.text = append(p.text, ' '); i == 0 && (l.begins || ev.Probe.Follow.Ending()) {
			p.text = append(p.text[:len(p.text)-1], ": "...)
		} else if i > 0 {
			p.text = append(p.text[:len(p.text)-1], ", "...)
		}
		p.text = append(append(p.text, c.Name...), '=')
		if c.was != nil {
			if err := p.value(c.was, c.wasOf); err != nil {
				return err
			}
			p.text = append(p.text, " -> "...)
		}
		if err := p.value(c.Value, processOf(ev)); err != nil {
			return err
		}
	}
	if l.stack != nil && p.oneLine {
		p.text = append(p.text, ' ')
		return p.value(l.stack, processOf(ev))
	}
	return nil
}

// End prints the path of each object.
func (p *followText) End(Summary) {
	if p.dropped > 0 {
		p.text = append(strconv.AppendInt(append(p.text, "\nThe paths of "...), int64(p.dropped), 10), " earlier objects are not kept.\n"...)
	}
	for _, o := range p.paths() {
		p.text = append(p.text, '\n')
		p.text = append(append(append(p.text, o.name...), ' '), pathText(o, p.look.Width)...)
	}
}

// sameFunction returns how many calls at the beginning of a path are of one function.
func sameFunction(path []step) int {
	if n := slices.IndexFunc(path, func(s step) bool { return s.function != path[0].function }); n >= 0 {
		return n
	}
	return len(path)
}

// pathText returns the sentence on an object's path, without its name.
func pathText(o *followed, width int) string {
	line := appendHex(nil, o.addr)
	if o.parent != "" {
		line = append(append(line, ", made of "...), o.parent...)
	}
	line = strconv.AppendInt(append(line, ": "...), int64(o.calls), 10)
	line = append(line, " calls in "...)
	if o.calls == 1 {
		line = append(line[:len(line)-len(" calls in ")], " call in "...)
	}
	line = append(line, (o.last - o.began).String()...)
	if o.end == "" {
		line = append(line, ", not ended"...)
	} else {
		line = append(append(line, ", ended by "...), o.end...)
	}
	line = append(line, '\n')
	steps := []byte("  ")
	for rest := o.path; len(rest) > 0; {
		if len(rest) < len(o.path) {
			steps = append(steps, ", "...)
		}
		n := sameFunction(rest)
		if n == 2 {
			n = 1 // two are as short as what would stand for them
		}
		steps = append(append(append(steps, rest[0].function...), " +"...), rest[0].at.String()...)
		if n > 1 {
			steps = append(append(steps, " to +"...), rest[n-1].at.String()...)
			steps = append(strconv.AppendInt(append(steps, " ("...), int64(n), 10), " times)"...)
		}
		rest = rest[n:]
	}
	if more := o.calls - len(o.path); more > 0 {
		steps = append(strconv.AppendInt(append(steps, ", and "...), int64(more), 10), " more"...)
	}
	return string(line) + Wrap(string(steps), cmp.Or(width, 100), 2) + "\n"
}
