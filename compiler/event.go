package compiler

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

// EventKind is the part of a call that an event shows.
type EventKind uint8

// The kinds of events.
const (
	EntryEvent  EventKind = iota + 1
	ReturnEvent           // what is known at return
	CallEvent             // entry and return in one
	BeginEvent            // the beginning of a span, of which there are no records
	SpanEvent             // beginning and end of a span in one
	RowEvent              // an object of an iterator, which is not part of a call
	WriteEvent            // a write to memory, see [Watch]
)

// String returns the name of the kind: entry, return, call, begin, span, row or write.
func (k EventKind) String() string {
	return [...]string{EntryEvent: "entry", ReturnEvent: "return", CallEvent: "call", BeginEvent: "begin", SpanEvent: "span", RowEvent: "row", WriteEvent: "write"}[k]
}

// RowStart is the offset of the record in [RowMap]. Two words of 8 bytes precede it:
// for iterators with [Function].LastAgain, one more than the number of the object that
// was seen last; and at RowLength the length of the record. What is read from an
// iterator for each row is the length and the record.
const (
	RowStart  = 16
	RowLength = 8
)

// MostRow is the largest size of the record of a row: the kernel keeps what was
// written for an object in a buffer of eight pages, and wants it not to be full.
const MostRow = 8<<12 - 1 - (RowStart - RowLength)

// EventType is one kind of record that a unit's programs write.
type EventType struct {
	Number int // as in the header of its records
	Probe  *Probe
	Kind   EventKind
	Items  []*Value
	Layout Layout
}

// Layout describes where the parts of a record are. It is the one contract
// between the generated code and the decoder. An offset of 0 means that the
// record does not have the part.
type Layout struct {
	Size int // of the record, at its largest
	// Strings is the number of strings at the end of the record, and Texts
	// their offset. They share what a record has from there on, in equal parts,
	// so that a record of short strings is small. [Layout.Slots] has their
	// places in the largest record, [Layout.Slot] in any.
	Strings, Texts int
	// Caller is the offset of the frame address of the call one level further out
	// in a chain, see HeaderCall.
	Caller int
	// Begin is the offset of the thread that began a span, see BeginPIDTID.
	Begin int
	// Object is the offset of the object that is followed, see ObjectAddr.
	Object int
	// Start is the offset of the time at entry, or at the beginning of a span.
	Start int
	// Outcomes is the offset of a word with the [Outcome]s, a bit each.
	Outcomes int
	// Operands is the offset of a word with a bit for each of the probe's operands
	// that could not be read, and of a word for each operand after it.
	Operands int
	// Faults is the offset of one byte for each item, a [Fault].
	Faults int
	Slots  []Slot // one for each item
}

// Slot is the place of one item in a record. At Off is a scalar as a 64-bit
// number, the pointer whose pointee is captured, or the number of bytes of a
// stack. At Data, which may equal Off, are the bytes of the value or of the
// pointee.
type Slot struct {
	Off  int
	Data int
	Cap  int // bytes captured at Data
	Full int // size of the whole value in bytes; for strings, Cap
}

// SizeFor returns the size of a record whose strings have room bytes each, a
// multiple of 8.
func (l *Layout) SizeFor(room int) int { return l.Texts + l.Strings*room }

// Least returns the size that every record has at least.
func (l *Layout) Least() int {
	if l.Strings > 0 {
		return l.Texts
	}
	return l.Size
}

// EndsRecord reports whether item i is one of the strings at the end.
func (l *Layout) EndsRecord(i int) bool { return l.Strings > 0 && l.Slots[i].Data >= l.Texts }

// Slot returns the slot of item i in a record of size bytes.
func (l *Layout) Slot(i, size int) Slot {
	s := l.Slots[i]
	if size >= l.Size || !l.EndsRecord(i) {
		return s
	}
	number := (s.Data - l.Texts) / Align8(s.Cap)
	room := min((size-l.Texts)/l.Strings&^7, s.Cap)
	s.Data, s.Cap = l.Texts+number*room, room
	return s
}

// MaxStore is the largest offset of a store instruction.
const MaxStore = 1<<15 - 1

// Fault is the reason why an item has no value.
type Fault uint8

// The faults.
const (
	NoFault Fault = iota
	// ValueFault means that the value could not be read. Its slot begins with
	// the address that the access was based on.
	ValueFault
	// PointeeFault means that the slot begins with the pointer, but what it
	// points to could not be read.
	PointeeFault
)

// StringSlack is the number of bytes in the slot of a string beyond those to
// show: the NUL, and one byte that tells a cut string from one that just fits.
const StringSlack = 2

// Align8 rounds n up to a multiple of 8.
func Align8(n int) int { return (n + 7) &^ 7 }

// Kept returns the items that are kept from entry until return, or from the beginning
// of a span until its end.
func (ev *EventType) Kept() []*Value {
	switch ev.Kind {
	case CallEvent:
		return ev.Items[:len(ev.Probe.Entry)]
	case SpanEvent:
		return ev.Items[:ev.Begun()]
	}
	return nil
}

// CallerName is the name of the return address of the function, as in the
// kernel's own events. The line of an event does not show it.
const CallerName = "__probe_ret_ip"
