package spec

import (
	"maps"
	"slices"
	"strings"
)

// EventFields are the fields that every kprobe_events line has besides its
// arguments, with the builtins that they are. The kernel's pid is of a thread.
var EventFields = map[string]string{
	"common_pid": "tid", "common_cpu": "cpu", "cpu": "cpu", "CPU": "cpu", "comm": "comm", "COMM": "comm",
}

// NoField is the error for a name in the filter of a kprobe_events line that
// is none of its fields.
func (t *Trace) NoField(name Ident) *Error {
	err := Errorf(t.Text, name.At, "the event has no field %s", Quote(name.Name))
	names := t.ItemNames()
	names = append(names, slices.Sorted(maps.Keys(EventFields))...)
	if near, ok := Nearest(name.Name, slices.Values(names)); ok {
		return err.WithHint("did you mean '%s'?", near)
	}
	return err.WithHint("it has %s", strings.Join(names, " "))
}

// FieldItem returns what a name in the filter of a kprobe_events line stands
// for; nil: nothing. An argument hides a field that all events have.
func (t *Trace) FieldItem(name Ident) *Item {
	if i := slices.Index(t.ItemNames(), name.Name); i >= 0 {
		return t.Items[i]
	}
	if is, ok := EventFields[name.Name]; ok {
		return &Item{Value: &Builtin{Ident{is, name.At}}}
	}
	if name.Name == "__probe_ret_ip" && t.Probe.Return {
		return &Item{Value: &ReturnAddress{name.At}}
	}
	return nil
}
