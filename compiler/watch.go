package compiler

import "github.com/cilium/ebpf"

// Watch is memory whose writes a probe shows. A hardware breakpoint on each CPU
// runs the probe's program at every write.
type Watch struct {
	// Slot is the place in [WatchedMap].
	Slot int
	// Addr and Path lead to the memory: each access but the last reads a pointer,
	// the last one only adds its offset. If Path is empty, the address is that of
	// an object, which the program of Finder finds.
	Addr   uint64
	Path   []Access
	Finder *Probe
	Member int // the member of the object, an index of [Find].Members
	// Off is the offset of the memory from the beginning of the object.
	Off int
	// Size is the number of bytes: 1, 2, 4 or 8, and the address is a multiple of
	// it.
	Size int
	// Old and New are the value before and after the write. New is nil where the
	// program runs before the write, see [Arch].BreaksBefore.
	Old, New *Value
	At       *Value // the instruction pointer
	Stack    *Value // callers of the function that writes, or nil
}

// WatchedMap is the name of an array of one element with a slot for each [Watch],
// and the words of [PeekProgram] after the last. User space reads and writes it
// through mapped memory.
const WatchedMap = "watched"

// Offsets in a slot of [WatchedMap].
const (
	WatchedAddr = 0  // the address, or 0 if there is none
	WatchedLast = 8  // the bytes there, as they were seen last
	WatchedHits = 16 // number of times that the program has run
	WatchedIP   = 24 // where memory was written last, if [Arch].BreaksBefore
	// WatchedObject is the address of the object that the memory is in, and
	// WatchedNumber the number that it has in [ObjectsMap] until its end.
	WatchedObject = 32
	WatchedNumber = 40
	// WatchedEnd has the bytes that were there when the object ended, if WatchedKnown
	// is 1.
	WatchedEnd   = 48
	WatchedKnown = 56
	WatchedSize  = 64
)

// Find has the members to watch of the objects that a probe finds. The probe follows
// each object until it ends, see [Follow].
type Find struct {
	Members []Member
}

// Member is a member of an object that is found.
type Member struct {
	Addr *Value // of the member
	Now  *Value // what is there
}

// PeekProgram is the name of the program that reads kernel memory for user space:
// PeekSize bytes at PeekAddr, into PeekData. PeekError is 0 or a negative error number.
const PeekProgram = "peek"

// Offsets of the words of [PeekProgram] from the end of the slots.
const (
	PeekAddr = 8 * iota
	PeekSize
	PeekData
	PeekError
	peekWords
)

// NewWatchedMap returns the map for a number of slots.
func NewWatchedMap(slots int) *ebpf.MapSpec {
	return &ebpf.MapSpec{
		Name: WatchedMap, Type: ebpf.Array, KeySize: 4, ValueSize: uint32(slots*WatchedSize + peekWords), MaxEntries: 1, Flags: mmapable,
	}
}

// Watched returns the probes of a unit that watch memory.
func (u *Unit) Watched() (all []*Probe) {
	for _, p := range u.Probes() {
		if p.Watch != nil {
			all = append(all, p)
		}
	}
	return all
}
