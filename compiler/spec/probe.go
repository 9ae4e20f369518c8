package spec

import (
	"strconv"
	"strings"
)

// ProbeKind is the letter that a kprobe_events line begins with.
type ProbeKind byte

// The kinds of lines.
const (
	Kprobe     ProbeKind = 'p' // at an instruction, or with %return
	Kretprobe  ProbeKind = 'r' // where a function returns
	Fprobe     ProbeKind = 'f' // where a function begins, or with %return
	Tracepoint ProbeKind = 't'
)

// Probe is what a kprobe_events line says besides function, values and
// condition. In such a trace every item has a Type or none, never a format or
// a predicate; the condition is one on [Field] values.
type Probe struct {
	Kind ProbeKind
	// Return: the event is at the return. So it is for r, with %return, and
	// for an f that mentions $retval.
	Return    bool
	MaxActive int    // of r8; 0: not given
	Group     Ident  // of GROUP/EVENT; no name: see [Trace.GroupName]
	Event     Ident  // no name: see [Trace.EventName]
	Offset    uint64 // of SYMBOL+OFFSET
	Address   uint64 // instead of a symbol, which has no name then; 0: none
}

// LongestEvent is the kernel's limit for the names of groups and events.
const LongestEvent = 63

// GroupName returns the group of a probe's event, as given or as the kernel
// has it for the kind.
func (t *Trace) GroupName() string {
	switch {
	case t.Probe.Group.Name != "":
		return t.Probe.Group.Name
	case t.Probe.Kind == Fprobe:
		return "fprobes"
	case t.Probe.Kind == Tracepoint:
		return "tracepoints"
	default:
		return "kprobes"
	}
}

// EventName returns the name of a probe's event, as given or as the kernel
// makes it of the place: p_vfs_read_0, vfs_read__exit.
func (t *Trace) EventName() string {
	if t.Probe.Event.Name != "" {
		return t.Probe.Event.Name
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
	p := t.Probe
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

// Symbol returns the function, with the module before it.
func (t *Trace) Symbol() string {
	if t.Module.Name != "" {
		return t.Module.Name + ":" + t.Func.Name
	}
	return t.Func.Name
}

// ItemNames returns what the arguments of a probe are called: as given, or as
// the kernel does it, arg1, arg2 by their place, but the arguments of the
// function by their own names. It is of use when [AllArgs] is expanded.
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

// probeLine prints t as a kprobe_events line.
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

// probeHead prints what stands before the place: "r8:group/event".
func (t *Trace) probeHead() string {
	p := t.Probe
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

// probePlace prints where the probe is: "ext4:ext4_sync_file+16".
func (t *Trace) probePlace() string {
	place := t.Symbol()
	switch p := t.Probe; {
	case p.Address != 0:
		place = hex(p.Address)
	case p.Offset > 0:
		place += "+" + strconv.FormatUint(p.Offset, 10)
	}
	if t.Probe.Return && t.Probe.Kind != Kretprobe {
		place += "%return"
	}
	return place
}

func hex(n uint64) string { return "0x" + strconv.FormatUint(n, 16) }
