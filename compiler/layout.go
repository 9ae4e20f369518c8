package compiler

import "github.com/cilium/ebpf/btf"

// Offsets in the header of a record. All numbers are in the byte order of the
// machine.
const (
	HeaderEvent  = 0  // u32: index in Unit.Events
	HeaderCPU    = 4  // u32
	HeaderPIDTID = 8  // u64: thread id in the low half, process id in the high half
	HeaderTime   = 16 // u64: CLOCK_MONOTONIC in ns
	HeaderCall   = 24 // u64: the call's frame address
	HeaderComm   = 32 // 16 bytes: the thread's name, NUL-terminated
	HeaderSize   = 48
)

// EventKind says what part of a call an event shows.
type EventKind uint8

// The kinds of events.
const (
	EntryEvent  EventKind = iota + 1
	ReturnEvent           // what is known at return
	CallEvent             // entry and return in one
)

// Event is one kind of record that a unit's programs write.
type Event struct {
	Number int // in the header of its records
	Probe  *Probe
	Kind   EventKind
	Items  []*Value
	Layout Layout
}

// Layout is where the parts of a record are. It is the one contract between
// the generated code and the decoder. Offsets of 0 stand for parts that are
// not there.
type Layout struct {
	Size int // of the record
	// Caller is the offset of the call's caller in a stack, as in HeaderCall.
	Caller int
	// Start is the offset of the time at entry.
	Start int
	// Flags is the offset of a word with the outcomes of tests at entry.
	Flags int
	// Faults is the offset of one byte for each item, see [Fault].
	Faults int
	Slots  []Slot // one for each item
}

// Slot is the place of one item. At Off is a scalar as a 64-bit number, the
// pointer whose pointee is captured, or the number of bytes of a stack. At
// Data, which may be Off, are the bytes of the value, or of the pointee.
type Slot struct {
	Off  int
	Data int
	Cap  int // bytes captured at Data
	Full int // bytes that the whole value has; for strings Cap
}

// maxStore is how far a store instruction reaches.
const maxStore = 1<<15 - 1

// Fault is why an item has no value.
type Fault uint8

// The faults.
const (
	NoFault Fault = iota
	// ValueFault: the value could not be read. Its slot begins with the
	// address that the access was based on.
	ValueFault
	// PointeeFault: the slot begins with the pointer, but what it points to
	// could not be read.
	PointeeFault
)

// StringSlack is what the slot of a string has beyond the bytes to show: the
// NUL, and one byte by which a cut string is told from one that just fits.
const StringSlack = 2

// extras are the parts of a record that some events have.
type extras struct{ caller, start, flags bool }

// newLayout places a record's parts: the extras, faults, the fixed part of
// every slot, then the data behind pointers and large values. A store reaches
// 32 KiB, a copy any offset. Entry items come first, so that what a stash keeps
// is one run of bytes.
func newLayout(items []*Value, has extras, maxBytes int) Layout {
	l := Layout{Size: HeaderSize}
	for _, part := range []struct {
		has bool
		off *int
	}{{has.caller, &l.Caller}, {has.start, &l.Start}, {has.flags, &l.Flags}} {
		if part.has {
			*part.off = l.Size
			l.Size += 8
		}
	}
	l.Faults = l.Size
	l.Size += align8(len(items))
	for _, v := range items {
		l.Slots = append(l.Slots, newSlot(v, maxBytes))
	}
	for i := range l.Slots {
		s := &l.Slots[i]
		s.Off, s.Data = l.Size, l.Size
		if inline := align8(s.Cap); inRecordHead(items[i]) {
			l.Size += inline
		} else {
			l.Size += 8
		}
	}
	for i := range l.Slots {
		if s := &l.Slots[i]; !inRecordHead(items[i]) {
			s.Data = l.Size
			l.Size += align8(s.Cap)
		}
	}
	return l
}

// inRecordHead says whether a value is stored word by word.
func inRecordHead(v *Value) bool {
	return v.Pointee == nil && (v.Scalar != nil || v.inWords())
}

// newSlot sizes the slot of a value.
func newSlot(v *Value, maxBytes int) Slot {
	switch {
	case v.Text != NoText:
		return Slot{Cap: maxBytes + StringSlack, Full: maxBytes + StringSlack}
	case v.Pointee == nil && v.Scalar != nil:
		return Slot{Cap: 8, Full: 8}
	}
	t := v.Type
	if v.Pointee != nil {
		t = v.Pointee
	}
	full, err := btf.Sizeof(t)
	if err != nil {
		return Slot{}
	}
	if v.inWords() && v.Pointee == nil || v.Base.Builtin == KernelStack || v.Base.Builtin == Comm || v.Base.Const != nil {
		return Slot{Cap: full, Full: full}
	}
	return Slot{Cap: min(full, maxBytes), Full: full}
}

func align8(n int) int { return (n + 7) &^ 7 }
