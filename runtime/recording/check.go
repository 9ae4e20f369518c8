package recording

import (
	"slices"

	"github.com/ksnoop/ksnoop/compiler"
)

// mostRecord is the largest size of a record in bytes that is accepted.
const mostRecord = 16 << 20

// mostItems is the largest number of items of an event: each takes 8 bytes of those
// that programs can write to.
const mostItems = compiler.MaxStore / 8

// fits reports whether [runtime.Event.Decode] can decode any record of an event that
// is as long as its layout says, so that all parts are inside.
func fits(ev *compiler.EventType) bool {
	if ev.Kind < compiler.EntryEvent || ev.Kind > compiler.RowEvent || len(ev.Items) > mostItems {
		return false
	}
	if ev.Kind == compiler.SpanEvent && (ev.Probe.Span == nil || ev.Begun() > len(ev.Items)) {
		return false
	}
	if ev.Probe.Measure != compiler.NoMeasure || ev.Kind == compiler.BeginEvent {
		return true // there are no records
	}
	l := &ev.Layout
	if l.Size > mostRecord || l.Texts > l.Size || l.Least() < compiler.HeaderSize || l.Strings > len(ev.Items) || len(l.Slots) != len(ev.Items) {
		return false
	}
	inside := func(from, size int) bool { return from <= l.Least()-size }
	if !inside(l.Start, 8) || !inside(l.Begin, compiler.BeginSize) || !inside(l.Caller, 8) || l.Object != 0 || !inside(l.Faults, len(ev.Items)) {
		return false
	}
	for i, v := range ev.Items {
		s := l.Slots[i]
		if !inside(s.Off, 8) || s.Cap > mostRecord || s.Data > l.Size-s.Cap || !holds(s, v) {
			return false
		}
		if l.EndsRecord(i) {
			if v.Text == compiler.NoText || s.Cap == 0 || (s.Data-l.Texts)/compiler.Align8(s.Cap) >= l.Strings {
				return false
			}
		} else if !inside(s.Data, s.Cap) {
			return false
		}
		if v.Before != nil && !comparable(ev, i) {
			return false
		}
	}
	return true
}

// holds reports whether a slot has room for what is decoded of a value.
func holds(s compiler.Slot, v *compiler.Value) bool {
	switch {
	case v.Text == compiler.PathText:
		return s.Cap >= compiler.PathName
	case v.Text != compiler.NoText:
		return s.Full >= compiler.StringSlack
	case v.Pointee == nil && v.Scalar != nil:
		return s.Cap >= v.Scalar.Size
	}
	return true
}

// comparable reports whether the two states of an item that is compared are both
// there, with the same type and size.
func comparable(ev *compiler.EventType, i int) bool {
	v := ev.Items[i]
	was := slices.Index(ev.Items, v.Before)
	return was >= 0 && was != i && v.Before.Before == nil && v.DataType() == v.Before.DataType() && ev.Layout.Slots[was].Cap == ev.Layout.Slots[i].Cap
}

// mostBuckets is the largest number of buckets of a histogram that is accepted.
const mostBuckets = 1 << 12

// countable reports whether a cell of an aggregate can be shown, and joined with others.
func countable(a *compiler.Aggregate) bool {
	switch {
	case a.Kind > compiler.Linear || a.Value != nil && a.Value.Scalar == nil:
		return false
	case a.Kind == compiler.Count:
		return true
	case a.Kind == compiler.Linear:
		return a.Value != nil && a.Value.Scalar.Width() > 0 && a.Step > 0 && a.High != a.Low && a.Steps() <= mostBuckets
	}
	return a.Value != nil
}
