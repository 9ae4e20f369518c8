package codegen

import (
	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// extras are the optional parts of a record.
type extras struct {
	caller, begin, object, start, flags bool
	operands                            int
}

// newLayout places a record's parts: the extras, the faults, the fixed part of
// every slot, then the data of pointers and large values, and finally strings. A
// store reaches 32 KiB, a copy any offset. The first kept items, which are kept from
// entry until return, are one run of bytes with all their data.
func newLayout(items []*compiler.Value, kept int, has extras, maxBytes int) compiler.Layout {
	l := compiler.Layout{Size: compiler.HeaderSize}
	for _, part := range []struct {
		has  bool
		off  *int
		size int
	}{{has.caller, &l.Caller, 8}, {has.begin, &l.Begin, compiler.BeginSize}, {has.object, &l.Object, compiler.ObjectPart},
		{has.start, &l.Start, 8}, {has.flags, &l.Outcomes, 8}} {
		if part.has {
			*part.off = l.Size
			l.Size += part.size
		}
	}
	if has.operands > 0 {
		l.Operands = l.Size
		l.Size += 8 + 8*has.operands
	}
	l.Faults = l.Size
	l.Size += compiler.Align8(len(items))
	for _, v := range items {
		l.Slots = append(l.Slots, newSlot(v, maxBytes))
	}
	for i := range l.Slots {
		s := &l.Slots[i]
		s.Off, s.Data = l.Size, l.Size
		if inline := compiler.Align8(s.Cap); inRecordHead(items[i]) {
			l.Size += inline
		} else {
			l.Size += 8
		}
	}
	last := func(i int) bool { return i >= kept && endsRecord(items[i]) }
	for i := range l.Slots {
		if s := &l.Slots[i]; !inRecordHead(items[i]) && !last(i) {
			s.Data = l.Size
			l.Size += compiler.Align8(s.Cap)
		}
	}
	l.Texts = l.Size
	room := 0 // the same for all: paths need more
	for i := range l.Slots {
		if last(i) {
			room = max(room, l.Slots[i].Cap)
		}
	}
	for i := range l.Slots {
		if s := &l.Slots[i]; last(i) {
			s.Data, s.Cap = l.Size, room
			l.Size += compiler.Align8(room)
			l.Strings++
		}
	}
	return l
}

// endsRecord reports whether a value is a string that is read through a pointer.
func endsRecord(v *compiler.Value) bool {
	return v.Text != compiler.NoText && v.Pointee != nil
}

// inRecordHead reports whether a value is stored word by word.
func inRecordHead(v *compiler.Value) bool {
	return v.Pointee == nil && (v.Scalar != nil || v.InWords())
}

func isStack(v *compiler.Value) bool {
	return v.Base.Builtin == compiler.KernelStack || v.Base.Builtin == compiler.UserStack
}

// newSlot returns a slot with the sizes for a value.
func newSlot(v *compiler.Value, maxBytes int) compiler.Slot {
	switch {
	case v.Text == compiler.PathText:
		return pathSlot(maxBytes)
	case v.Text != compiler.NoText:
		return compiler.Slot{Cap: maxBytes + compiler.StringSlack, Full: maxBytes + compiler.StringSlack}
	case v.Pointee == nil && v.Scalar != nil:
		return compiler.Slot{Cap: 8, Full: 8}
	}
	t := v.Type
	if v.Pointee != nil {
		t = v.Pointee
	}
	full, err := btf.Sizeof(t)
	if err != nil {
		return compiler.Slot{}
	}
	if v.InWords() && v.Pointee == nil || isStack(v) || v.Base.Builtin == compiler.Comm || v.Base.Const != nil {
		return compiler.Slot{Cap: full, Full: full}
	}
	return compiler.Slot{Cap: min(full, maxBytes), Full: full}
}

// pathSlot returns the slot of a path of at most maxBytes bytes. Its data has room for
// that many bytes of names before the last one is read.
func pathSlot(maxBytes int) compiler.Slot {
	n := max(compiler.PathNames+maxBytes, compiler.PathName) + compiler.LongestName
	return compiler.Slot{Cap: n, Full: n}
}

// refuse returns an error about the spec of a trace.
func refuse(t *spec.Trace, format string, args ...any) *spec.Error {
	err := t.Errorf(t.Func.At, format, args...)
	err.From = t.From
	return err
}

// checkSize returns an error if the ring buffer, or the buffer of an iterator, has no room
// for the record of an event, or if stores do not reach all of its slots.
func checkSize(ev *compiler.EventType, ring uint32) error {
	t, name, l := ev.Probe.Trace, ev.Probe.Func.Name, ev.Layout
	switch {
	case ev.Probe.Measure != compiler.NoMeasure:
	case ev.Kind == compiler.RowEvent && l.Size > compiler.MostRow:
		return refuse(t, "a row of iter:%s takes up to %d bytes, and the kernel passes on %d", name, l.Size, compiler.MostRow).
			WithHint("record less, or lower --max-bytes")
	case ev.Kind != compiler.RowEvent && l.Size+8 > int(ring):
		return refuse(t, "a record of %s takes %d bytes, more than the ring buffer of %d", name, l.Size, ring).
			WithHint("record less, or make it larger with --pages")
	}
	for _, s := range l.Slots {
		if s.Off+8 > compiler.MaxStore {
			return refuse(t, "%s has %d values, more than fit in one record", name, len(ev.Items)).WithHint("name fewer")
		}
	}
	return nil
}
