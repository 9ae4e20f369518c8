package runtime

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/ksnoop/ksnoop/compiler"
)

// Event is a decoded record.
type Event struct {
	*compiler.Event // what it shows
	CPU             int
	PID, TID        uint32        // process and thread
	Time            time.Duration // CLOCK_MONOTONIC
	Start           time.Duration // at entry; 0 if it is not recorded
	Call            uint64        // the same at entry and return of a call
	Caller          uint64        // the Call of the caller in a stack; 0: none
	Comm            []byte        // the thread's name
	Values          []Value       // one for each item
}

// Value is an item's value in an event.
type Value struct {
	*compiler.Value
	// Addr is the pointer for a value that is followed. With a ValueFault
	// it is the pointer through which it was to be read.
	Addr uint64
	// Data is the bytes of the value, or of what the pointer points to. A
	// string's are without its NUL.
	Data  []byte
	Full  int  // bytes of the whole value; 0 for a cut string, whose length is unknown
	Cut   bool // Data is not all of it
	Fault compiler.Fault
}

// Decode reads a record that a unit's programs wrote. The event refers to its
// bytes, and its former content becomes invalid. Bytes that are no such record
// are an error, or have values that mean nothing.
func (e *Event) Decode(u *compiler.Unit, rec []byte) error {
	if len(rec) < compiler.HeaderSize {
		return fmt.Errorf("decode a record of %d bytes: it has no header", len(rec))
	}
	order := binary.NativeEndian
	number := order.Uint32(rec[compiler.HeaderEvent:])
	if int(number) >= len(u.Events) {
		return fmt.Errorf("decode a record: there is no event %d", number)
	}
	e.Event = u.Events[number]
	if len(rec) < e.Layout.Size {
		return fmt.Errorf("decode a record of %s: %d bytes of %d", e.Probe.Func.Name, len(rec), e.Layout.Size)
	}
	pidtid := order.Uint64(rec[compiler.HeaderPIDTID:])
	e.CPU = int(order.Uint32(rec[compiler.HeaderCPU:]))
	e.PID, e.TID = uint32(pidtid>>32), uint32(pidtid)
	e.Time = time.Duration(order.Uint64(rec[compiler.HeaderTime:]))
	e.Call = order.Uint64(rec[compiler.HeaderCall:])
	e.Comm = untilNUL(rec[compiler.HeaderComm:compiler.HeaderSize])
	e.Start = 0
	if e.Layout.Start != 0 {
		e.Start = time.Duration(order.Uint64(rec[e.Layout.Start:]))
	}
	e.Caller = 0
	if e.Layout.Caller != 0 {
		e.Caller = order.Uint64(rec[e.Layout.Caller:])
	}
	e.Values = e.Values[:0]
	for i, v := range e.Items {
		fault := compiler.Fault(rec[e.Layout.Faults+i])
		e.Values = append(e.Values, decodeValue(v, e.Layout.Slots[i], fault, rec))
	}
	return nil
}

func decodeValue(v *compiler.Value, s compiler.Slot, fault compiler.Fault, rec []byte) Value {
	val := Value{Value: v, Fault: fault, Full: s.Full}
	if fault != compiler.NoFault || v.Pointee != nil {
		val.Addr = binary.NativeEndian.Uint64(rec[s.Off:])
	}
	if fault != compiler.NoFault {
		return val
	}
	data := rec[s.Data:][:s.Cap]
	switch {
	case v.Base.Builtin == compiler.KernelStack:
		n := binary.NativeEndian.Uint64(rec[s.Off:])
		val.Data = data[:min(n, uint64(len(data)))]
	case v.Text != compiler.NoText:
		val.Data = untilNUL(data)
		val.Full = len(val.Data)
		if limit := s.Cap - compiler.StringSlack; len(val.Data) > limit {
			val.Data, val.Full, val.Cut = val.Data[:limit], 0, true
		}
	case v.Pointee == nil && v.Scalar != nil:
		val.Data = data[:v.Scalar.Size] // little-endian
		val.Full = v.Scalar.Size
	default:
		val.Data = data
		val.Cut = s.Cap < s.Full
	}
	return val
}

func untilNUL(b []byte) []byte {
	if before, _, ok := bytes.Cut(b, []byte{0}); ok {
		return before
	}
	return b
}
