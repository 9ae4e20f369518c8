package runtime

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/ksnoop/ksnoop/compiler"
)

// Event is a decoded record.
type Event struct {
	*compiler.EventType // the kind of event
	CPU                 int
	PID, TID            uint32        // process and thread
	Time                time.Duration // CLOCK_MONOTONIC
	Start               time.Duration // at entry, or 0 if it is not recorded
	// Call is the frame address of the call, the same at its entry and return; a later
	// call may have the same. Of a write to memory it is the address of the memory.
	Call   uint64
	Caller uint64  // Call of the caller in a chain, or 0
	Comm   []byte  // the thread's name
	Begin  Begin   // of a span, at Start
	Object Object  // that is followed
	Ended  []Ended // what was watched of an object that ends, see EndObject; nil at other events
	Values []Value // one for each item; those of the beginning of a span come first
	paths  []byte  // memory for the values that are paths
}

// Object is an object that is followed.
type Object struct {
	Addr   uint64
	Number uint64 // counted from 1 in the order of their beginning, or 0 for none
}

// Origin returns the process in which value i was taken, and when: values of the
// beginning of a span are those of the thread that began it.
func (ev *Event) Origin(i int) (pid uint32, at time.Duration) {
	if i < ev.Begun() {
		return ev.Begin.PID, ev.Start
	}
	return ev.PID, ev.Time
}

// Begin is the thread that began a span, and its CPU.
type Begin struct {
	CPU      int
	PID, TID uint32
	Comm     []byte
}

// Value is the value of an item in an event.
type Value struct {
	*compiler.Value
	// Addr is the pointer if the value was read through a pointer. With a
	// ValueFault it is the pointer whose memory could not be read.
	Addr uint64
	// Data holds the bytes of the value, or of what the pointer points to. A
	// string's have no NUL, but an array of char that is shown as a string ends in NULs.
	Data  []byte
	Full  int  // size of the whole value in bytes, or 0 for a cut string, whose length is unknown
	Cut   bool // Data is not all of the value
	Fault compiler.Fault
	// Was is the value at entry that this one is compared with, or nil. It is one
	// of the event's values itself, and Hidden.
	Was *Value
}

// ValueOf returns the value of an item of the event, or nil.
func (e *Event) ValueOf(v *compiler.Value) *Value {
	for i := range e.Values {
		if e.Values[i].Value == v {
			return &e.Values[i]
		}
	}
	return nil
}

// Decode decodes a record that a unit's programs wrote. The event refers to the
// bytes of rec, and its former content becomes invalid. For bytes that are not
// such a record it returns an error, or values without meaning.
func (e *Event) Decode(u *compiler.Unit, rec []byte) error {
	number, err := recordedEvent(u, rec)
	if err != nil {
		return err
	}
	order := binary.NativeEndian
	e.EventType = u.Events[number]
	if least := e.Layout.Least(); len(rec) < least {
		return fmt.Errorf("decode a record of %s: %d bytes of %d", e.Probe.Func.Name, len(rec), least)
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
	e.Begin = Begin{}
	if at := e.Layout.Begin; at != 0 {
		begin := rec[at:][:compiler.BeginSize]
		pidtid := order.Uint64(begin[compiler.BeginPIDTID:])
		e.Begin = Begin{
			CPU: int(order.Uint32(begin[compiler.BeginCPU:])), PID: uint32(pidtid >> 32), TID: uint32(pidtid),
			Comm: untilNUL(begin[compiler.BeginComm:]),
		}
	}
	e.Object, e.Ended = Object{}, nil
	if at := e.Layout.Object; at != 0 {
		e.Object = Object{order.Uint64(rec[at+compiler.ObjectAddr:]), order.Uint64(rec[at+compiler.ObjectNumber:])}
	}
	e.Caller = 0
	if e.Layout.Caller != 0 {
		e.Caller = order.Uint64(rec[e.Layout.Caller:])
	}
	e.Values, e.paths = e.Values[:0], e.paths[:0]
	for i, v := range e.Items {
		fault := compiler.Fault(rec[e.Layout.Faults+i])
		val := decodeValue(v, e.Layout.Slot(i, len(rec)), fault, rec)
		if v.Text == compiler.PathText && fault == compiler.NoFault {
			if len(val.Data) < compiler.PathName {
				return fmt.Errorf("decode a record of %s: %d bytes are too few for a path", e.Probe.Func.Name, len(val.Data))
			}
			from := len(e.paths)
			e.paths, val.Cut = appendPath(e.paths, val.Data)
			val.Data = e.paths[from:]
			if val.Full = len(val.Data); val.Cut {
				val.Full = 0
			}
		}
		e.Values = append(e.Values, val)
	}
	for i, v := range e.Items {
		if v.Before != nil {
			if was := slices.Index(e.Items, v.Before); was >= 0 {
				e.Values[i].Was = &e.Values[was]
			}
		}
	}
	return nil
}

// recordedEvent returns the number of the event of a record.
func recordedEvent(u *compiler.Unit, rec []byte) (uint32, error) {
	if len(rec) < compiler.HeaderSize {
		return 0, fmt.Errorf("decode a record of %d bytes: it has no header", len(rec))
	}
	number := binary.NativeEndian.Uint32(rec[compiler.HeaderEvent:])
	if int(number) >= len(u.Events) {
		return 0, fmt.Errorf("decode a record: there is no event %d", number)
	}
	if ev := u.Events[number]; ev.Kind == compiler.BeginEvent || ev.Probe.Measure != compiler.NoMeasure {
		return 0, fmt.Errorf("decode a record of %s: this event has no records", ev.Probe.Func.Name)
	}
	return number, nil
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
	case v.Base.Builtin == compiler.KernelStack, v.Base.Builtin == compiler.UserStack:
		n := binary.NativeEndian.Uint64(rec[s.Off:])
		val.Data = data[:min(n, uint64(len(data)))]
		val.Full = len(val.Data)
	case v.Text == compiler.PathText:
		val.Data = data
	case v.Text != compiler.NoText:
		val.Data = untilNUL(data)
		val.Full = len(val.Data)
		if limit := s.Full - compiler.StringSlack; len(val.Data) > limit {
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
	before, _, _ := bytes.Cut(b, []byte{0})
	return before
}

// Elements returns the elements of an array that has an Elem, each with bytes of
// its own if it is a bitfield. If the array is cut, it returns those in Data; of other
// values, nil.
func (v *Value) Elements() []Value {
	var elements []Value
	if v.Elem == nil {
		return nil
	}
	for data := range slices.Chunk(v.Data, v.Elem.Load.Size) {
		if len(data) < v.Elem.Load.Size {
			break
		}
		if s := v.Elem.Load; s.Bits != 0 {
			var word [8]byte
			copy(word[:], data)
			bits := binary.LittleEndian.Uint64(word[:]) >> s.Shift & (1<<s.Bits - 1)
			data = binary.LittleEndian.AppendUint64(nil, bits)[:s.Size]
		}
		elements = append(elements, Value{Value: v.Elem, Data: data, Full: len(data)})
	}
	return elements
}

// Uint64 returns the unsigned number in Data, which has up to 8 bytes.
func (v *Value) Uint64() uint64 {
	var word [8]byte
	copy(word[:], v.Data)
	return binary.LittleEndian.Uint64(word[:])
}

// Int64 returns the signed number in Data, which has up to 8 bytes.
func (v *Value) Int64() int64 {
	shift := 64 - 8*min(len(v.Data), 8)
	return int64(v.Uint64()<<shift) >> shift
}

// Reason returns in a few words why the value could not be read.
func (v *Value) Reason() string {
	switch a := v.Addr; {
	case a == 0:
		return "NULL pointer"
	case a > math.MaxUint64-compiler.MaxErrno && v.Base.Builtin == compiler.UserStack:
		return "no stack of the process: " + errnoName(-a)
	case a > math.MaxUint64-compiler.MaxErrno:
		return "error pointer " + errnoName(-a)
	case a < 4096:
		return fmt.Sprintf("%#x is in the NULL page", a)
	case a>>63 == 0 && v.readsUser():
		return fmt.Sprintf("no readable user memory at %#x", a)
	case a>>63 == 0:
		return fmt.Sprintf("%#x is a user-space address", a)
	default:
		return fmt.Sprintf("no readable memory at %#x", a)
	}
}

// readsUser reports whether reading the value reads memory of the process.
func (v *Value) readsUser() bool {
	return v.Text.Space() != compiler.KernelSpace || slices.ContainsFunc(v.Path, func(a compiler.Access) bool { return a.In != compiler.KernelSpace })
}

func errnoName(n uint64) string {
	if name := compiler.ErrnoName(n); name != "" {
		return "-" + name
	}
	return fmt.Sprintf("-%d", n)
}

// appendPath appends the path whose names a walk has read, see [compiler.PathWalk],
// as the kernel writes it: the path of a file that has lost its name ends with
// " (deleted)", and one that is not below the root of its mount begins with "(unreachable)". If
// the first names are missing, the path begins with ".../", and cut is set.
func appendPath(dst, data []byte) (_ []byte, cut bool) {
	names := data[compiler.PathNames:]
	names = names[:min(uint64(binary.NativeEndian.Uint32(data[compiler.PathLength:])), uint64(len(names)))]
	switch compiler.PathEnding(data[compiler.PathEnd]) {
	case compiler.PathNameless:
		return appendNameless(dst, data), false
	case compiler.PathDetached:
		dst = append(dst, "(unreachable)"...)
	case compiler.PathCut:
		dst, cut = append(dst, "..."...), true
	}
	if len(names) == 0 {
		dst = append(dst, '/')
	}
	dst = appendNames(dst, names)
	if data[compiler.PathGone] != 0 {
		dst = append(dst, " (deleted)"...)
	}
	return dst, cut
}

// appendNames appends names in the opposite order, each behind a slash. In names,
// each ends with a NUL.
func appendNames(dst, names []byte) []byte {
	from := len(dst)
	dst = append(dst, names...)
	path := dst[from:]
	slices.Reverse(path) // now each name is behind its NUL, backwards
	for i := 0; i < len(path); {
		path[i] = '/'
		end := i + 1
		for end < len(path) && path[end] != 0 {
			end++
		}
		slices.Reverse(path[i+1 : end])
		i = end
	}
	return dst
}

// namelessSystems has what the kernel shows before the number of an inode.
var namelessSystems = map[string]string{"pipefs": "pipe", "sockfs": "socket", "pidfs": "pidfd"}

// appendNameless appends what the kernel shows for a file in no directory, such as
// "pipe:[4711]". What that is depends on code of the file system; where it is not
// known here, it is the name of the file system.
func appendNameless(dst, data []byte) []byte {
	system := untilNUL(data[compiler.PathNames:compiler.PathName])
	name := untilNUL(data[compiler.PathName:])
	switch string(system) {
	case "anon_inodefs":
		return append(append(dst, "anon_inode:"...), name...)
	case "tmpfs", "hugetlbfs", "secretmem": // memory that is shared by processes
		dst = append(append(dst, '/'), name...)
		return append(dst, " (deleted)"...)
	}
	if name, ok := namelessSystems[string(system)]; ok {
		dst = append(dst, name...)
	} else {
		dst = append(dst, system...)
	}
	dst = append(dst, ":["...)
	dst = strconv.AppendUint(dst, binary.NativeEndian.Uint64(data[compiler.PathIno:]), 10)
	return append(dst, ']')
}
