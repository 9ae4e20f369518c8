package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
)

// part is a run of bytes in a record.
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

// eventKinds is what part of a call an event shows.
var eventKinds = map[compiler.EventKind]string{
	compiler.EntryEvent: "at entry", compiler.ReturnEvent: "at return", compiler.CallEvent: "at return with values from entry",
}

// layouts prints where the parts of each record are; events with the same parts
// share a table. Those that are measured have no record.
func layouts(w io.Writer, unit *compiler.Unit) {
	var tables, measures groups
	for i, ev := range unit.Events {
		name := fmt.Sprintf("%s %s (%d)", functionName(ev.Probe.Func), eventKinds[ev.Kind], i)
		if m := ev.Probe.Measure; m != compiler.NoMeasure {
			measures.add(m.String(), name)
		} else {
			tables.add(layoutTable(ev), name)
		}
	}
	for _, table := range tables.keys {
		fmt.Fprintf(w, "\nThe record of %s:\n\n%s", some(tables.names[table]), table)
	}
	for _, m := range measures.keys {
		fmt.Fprintf(w, "\nMeasured are the %s of %s: there are no records.\n", m, some(measures.names[m]))
	}
}

func layoutTable(ev *compiler.Event) string {
	t := newTable("offset", "size", "name", "type", "")
	for _, p := range layoutParts(ev) {
		t.row(strconv.Itoa(p.off), strconv.Itoa(p.size), p.name, p.typ, p.note)
	}
	t.row(strconv.Itoa(ev.Layout.Size), "", "", "", "the end")
	return t.String()
}

func layoutParts(ev *compiler.Event) []part {
	l := ev.Layout
	parts := slices.Clone(headerParts)
	for _, p := range []part{
		{l.Caller, 8, "caller", "u64", "the call of the caller"},
		{l.Start, 8, "start", "u64", "time at entry"},
		{l.Flags, 8, "flags", "u64", "tests at entry that held, a bit each"},
		{l.Faults, len(l.Slots), "faults", fmt.Sprintf("u8[%d]", len(l.Slots)), "why an item has no value"},
	} {
		if p.off != 0 && p.size != 0 {
			parts = append(parts, p)
		}
	}
	for i, s := range l.Slots {
		parts = append(parts, slotParts(ev.Items[i], s)...)
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.off, b.off) })
	return parts
}

// slotParts are the fixed part of an item and, where this is another one, its
// data.
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
	case v.Text != compiler.NoText:
		data.name, data.typ, data.note = "*"+v.Name, fmt.Sprintf("char[%d]", s.Cap), "cut at its NUL"
	case v.Pointee != nil:
		data.name, data.typ = "*"+v.Name, btfdump.TypeName(v.Pointee)
	case v.Base.Builtin == compiler.KernelStack:
		return []part{{s.Off, 8, "size of " + v.Name, "u64", "in bytes"}, data}
	default:
		return []part{{s.Off, 8, "where " + v.Name + " is", "u64", "with a fault only"}, data}
	}
	return []part{{s.Off, 8, v.Name, typ, ""}, data}
}
