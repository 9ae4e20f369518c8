package spec

import (
	"strconv"
	"strings"
)

// LineKind is the first letter of a kprobe_events line.
type LineKind byte

// The kinds of lines.
const (
	Kprobe     LineKind = 'p' // at an instruction, or with %return
	Kretprobe  LineKind = 'r' // at the return of a function
	Fprobe     LineKind = 'f' // at the entry of a function, or with %return
	Tracepoint LineKind = 't'
)

// Line holds the parts of a kprobe_events line other than the function, the values
// and the condition. The items of such a trace may have a Type, but never a format
// or a predicate. The values in its condition are of type [*Field].
type Line struct {
	Kind LineKind
	// Return is true if the event is at the return of the function: for r, with
	// %return, and for an f with $retval.
	Return    bool
	MaxActive int    // the number after r, as in r8; 0 if not given
	Group     Ident  // of GROUP/EVENT; may be empty, see [Trace.GroupName]
	Event     Ident  // may be empty, see [Trace.EventName]
	Offset    uint64 // of SYMBOL+OFFSET
	Address   uint64 // in place of a symbol, or 0; Func has no name then
}

// LongestEvent is the kernel's limit for the names of groups and events.
const LongestEvent = 63

// GroupName returns the group of a line's event: the given one, or the kernel's
// default for the kind.
func (t *Trace) GroupName() string {
	switch {
	case t.Line.Group.Name != "":
		return t.Line.Group.Name
	case t.Line.Kind == Fprobe:
		return "fprobes"
	case t.Line.Kind == Tracepoint:
		return "tracepoints"
	default:
		return "kprobes"
	}
}

// EventName returns the name of a line's event: the given one, or the one that the
// kernel makes from the place, such as p_vfs_read_0 or vfs_read__exit.
func (t *Trace) EventName() string {
	if t.Line.Event.Name != "" {
		return t.Line.Event.Name
	}
	name := t.defaultEvent()
	clean := strings.Map(func(r rune) rune {
		if strings.ContainsRune(":.*?[]!^-", r) {
			return '_'
		}
		return r
	}, name)
	return clean[:min(len(clean), LongestEvent)]
}

func (t *Trace) defaultEvent() string {
	p := t.Line
	side, suffix := "p_", "__entry"
	if p.Return {
		side, suffix = "r_", "__exit"
	}
	switch {
	case p.Kind == Fprobe:
		return t.Symbol() + suffix
	case p.Kind == Tracepoint:
		return t.Func.Name
	case p.Address != 0:
		return side + hex(p.Address)
	default:
		return side + t.Symbol() + "_" + strconv.FormatUint(p.Offset, 10)
	}
}

// Symbol returns the name of the function with its module: "ext4:ext4_sync_file".
func (t *Trace) Symbol() string {
	if t.Module.Name != "" {
		return t.Module.Name + ":" + t.Func.Name
	}
	return t.Func.Name
}

// ItemNames returns the names of the arguments of a line: the given ones, or those
// that the kernel gives. These are arg1, arg2 and so on by position, but an argument
// of the function keeps its own name. [AllArgs] must have been expanded.
func (t *Trace) ItemNames() []string {
	names := make([]string, len(t.Items))
	for i, item := range t.Items {
		switch x := item.Value.(type) {
		case *Arg:
			names[i] = x.Name.Name
		case *Old:
			names[i] = x.Name.Name
		default:
			names[i] = "arg" + strconv.Itoa(i+1)
		}
		if item.Name.Name != "" {
			names[i] = item.Name.Name
		}
	}
	return names
}

// probeLine returns t as a kprobe_events line.
func (t *Trace) probeLine() string {
	words := []string{t.probeHead(), t.probePlace()}
	for _, item := range t.Items {
		words = append(words, item.String())
	}
	if t.Cond != nil {
		words = append(words, "if", t.Cond.String())
	}
	return strings.Join(words, " ")
}

// probeHead returns the first word of the line: "r8:group/event".
func (t *Trace) probeHead() string {
	p := t.Line
	head := string(rune(p.Kind))
	if p.MaxActive > 0 {
		head += strconv.Itoa(p.MaxActive)
	}
	switch {
	case p.Group.Name != "":
		return head + ":" + p.Group.Name + "/" + p.Event.Name
	case p.Event.Name != "":
		return head + ":" + p.Event.Name
	default:
		return head
	}
}

// probePlace returns the second word of the line, its place: "ext4:ext4_sync_file+16".
func (t *Trace) probePlace() string {
	place := t.Symbol()
	switch p := t.Line; {
	case p.Address != 0:
		place = hex(p.Address)
	case p.Offset > 0:
		place += "+" + strconv.FormatUint(p.Offset, 10)
	}
	if t.Line.Return && t.Line.Kind != Kretprobe {
		place += "%return"
	}
	return place
}

func hex(n uint64) string { return "0x" + strconv.FormatUint(n, 16) }
