package listing

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strconv"

	"github.com/cilium/ebpf"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// part is a range of bytes in a record.
type part struct {
	off, size       int
	name, typ, note string
}

// headerParts are the parts that every record begins with.
var headerParts = []part{
	{compiler.HeaderEvent, 4, "event", "u32", ""},
	{compiler.HeaderCPU, 4, "cpu", "u32", ""},
	{compiler.HeaderPIDTID, 4, "thread", "u32", ""},
	{compiler.HeaderPIDTID + 4, 4, "process", "u32", ""},
	{compiler.HeaderTime, 8, "time", "u64", "CLOCK_MONOTONIC in ns"},
	{compiler.HeaderCall, 8, "call", "u64", "the frame's address"},
	{compiler.HeaderComm, 16, "comm", "char[16]", ""},
}

// eventKinds names the part of a call that an event shows.
var eventKinds = map[compiler.EventKind]string{
	compiler.EntryEvent: "at entry", compiler.ReturnEvent: "at return", compiler.CallEvent: "at return with values from entry",
	compiler.SpanEvent: "at the end of a span", compiler.RowEvent: "for an object", compiler.WriteEvent: "at a write",
}

// layouts prints the offsets of the parts of each record; events with the same parts
// share a table. Measured events and beginnings of spans have no record.
func layouts(w io.Writer, unit *compiler.Unit) {
	var tables, measures Groups
	for i, ev := range unit.Events {
		if ev.Kind == compiler.BeginEvent {
			continue
		}
		name := fmt.Sprintf("%s %s (%d)", render.FunctionName(ev.Probe.Func), eventKinds[ev.Kind], i)
		if m := ev.Probe.Measure; m != compiler.NoMeasure {
			measures.Add(m.String(), name)
		} else {
			tables.Add(layoutTable(ev), name)
		}
	}
	for _, table := range tables.Keys {
		fmt.Fprintf(w, "\nThe record of %s:\n\n%s", some(tables.Names[table]), table)
	}
	for _, m := range measures.Keys {
		fmt.Fprintf(w, "\nMeasured are the %s of %s: there are no records.\n", m, some(measures.Names[m]))
	}
}

func layoutTable(ev *compiler.EventType) string {
	t := render.NewTable("offset", "size", "name", "type", "")
	for _, p := range layoutParts(ev) {
		t.Row(strconv.Itoa(p.off), strconv.Itoa(p.size), p.name, p.typ, p.note)
	}
	end := "the end"
	if ev.Layout.Strings > 0 {
		end = "the end, at most: short strings take less"
	}
	t.Row(strconv.Itoa(ev.Layout.Size), "", "", "", end)
	return t.String()
}

func startNote(ev *compiler.EventType) string {
	if ev.Kind == compiler.SpanEvent {
		return "time at the beginning"
	}
	return "time at entry"
}

func layoutParts(ev *compiler.EventType) []part {
	l := ev.Layout
	parts := slices.Clone(headerParts)
	for _, p := range []part{
		{l.Caller, 8, "caller", "u64", "the call of the caller"},
		{l.Begin, compiler.BeginSize, "begin", "", "thread, process, CPU and comm at the beginning"},
		{l.Start, 8, "start", "u64", startNote(ev)},
		{l.Outcomes, 8, "flags", "u64", "conditions at entry: a bit each for those that held, and for those that a fault left open"},
		{l.Faults, len(l.Slots), "faults", fmt.Sprintf("u8[%d]", len(l.Slots)), "why an item has no value"},
	} {
		if p.off != 0 && p.size != 0 {
			parts = append(parts, p)
		}
	}
	for i, s := range l.Slots {
		parts = append(parts, slotParts(ev.Items[i], s)...)
	}
	sort.SliceStable(parts, func(i, j int) bool { return parts[i].off < parts[j].off })
	return parts
}

// slotParts returns the fixed part of an item and, if it is separate, the part with
// its data.
func slotParts(v *compiler.Value, s compiler.Slot) []part {
	typ := btfdump.TypeName(v.Type)
	if s.Data == s.Off {
		note := ""
		if v.Scalar != nil && v.Scalar.Size < 8 {
			note = "extended to 64 bits"
		}
		return []part{{s.Off, s.Cap, v.Name, typ, note}}
	}
	data := part{s.Data, s.Cap, v.Name, typ, ""}
	if s.Cap < s.Full {
		data.note = fmt.Sprintf("the first %d bytes of %d", s.Cap, s.Full)
	}
	switch {
	case v.Text == compiler.PathText:
		data.name, data.typ, data.note = "path at "+v.Name, fmt.Sprintf("char[%d]", s.Cap), "names, the last one first"
	case v.Text != compiler.NoText:
		data.name, data.typ, data.note = "*"+v.Name, fmt.Sprintf("char[%d]", s.Cap), "cut at its NUL"
	case v.Pointee != nil:
		data.name, data.typ = "*"+v.Name, btfdump.TypeName(v.Pointee)
	case v.Base.Builtin == compiler.KernelStack, v.Base.Builtin == compiler.UserStack:
		return []part{{s.Off, 8, "size of " + v.Name, "u64", "in bytes"}, data}
	default:
		return []part{{s.Off, 8, "where " + v.Name + " is", "u64", "with a fault only"}, data}
	}
	return []part{{s.Off, 8, v.Name, typ, ""}, data}
}

// mapTable prints the maps of a unit with their sizes.
func mapTable(w io.Writer, unit *compiler.Unit) {
	t := render.NewTable("map", "type", "key", "value", "entries", "memory")
	for _, name := range slices.Sorted(maps.Keys(unit.Collection.Maps)) {
		m := unit.Collection.Maps[name]
		if m.Type == ebpf.RingBuf {
			t.Row(name, m.Type.String(), "", "", "", byteSize(int(m.MaxEntries)))
			continue
		}
		t.Row(name, m.Type.String(), fmt.Sprint(m.KeySize), fmt.Sprint(m.ValueSize), fmt.Sprint(m.MaxEntries), mapMemory(m))
	}
	fmt.Fprintf(w, "\n%s", t)
}

// noPrealloc is BPF_F_NO_PREALLOC.
const noPrealloc = 1

// mapMemory returns the memory that the elements of a map take, as text.
func mapMemory(m *ebpf.MapSpec) string {
	size := byteSize(int(m.MaxEntries) * int(m.ValueSize))
	switch {
	case m.Type == ebpf.PerCPUArray:
		return size + " for each CPU"
	case m.Type == ebpf.Hash:
		size = byteSize(int(m.MaxEntries) * int(m.KeySize+m.ValueSize))
		if m.Flags&noPrealloc != 0 {
			return "as used, at most " + size
		}
	}
	return size
}

// byteSize returns a number of bytes as text for people.
func byteSize(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.4g KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}
