package compiler

import (
	"github.com/cilium/ebpf"
)

// CountersMap is the name of an array of one element, laid out by
// [CounterLayout]. User space reads and writes it through mapped memory: a
// lookup by bpf(2) disables the programs of all kprobes on its CPU for as long
// as its task is preempted inside.
const CountersMap = "counters"

// Counters holds what a unit's programs count for each event.
type Counters struct {
	Lost       uint64 // records that found the ring buffer full
	NoRoom     uint64 // calls that found no room to keep their entry values
	Unreadable uint64 // calls with a predicate on a value that could not be read
	Unpaired   uint64 // entries whose return was missed, returns whose entry was
	// Filtered and Matched are counted only with [Options].CountCalls. Filtered
	// counts the calls that are not shown; Matched counts those that are shown,
	// or would be if they were not lost. A call is counted when its fate is
	// known.
	Filtered, Matched uint64
	// Limited counts the events that matched, but were more than [Options].Rate in
	// their second.
	Limited uint64
	// Replaced and Open are counted of the beginnings of spans. Replaced counts
	// those that came to no end before another one with the same key. Open counts
	// those that have not ended yet.
	Replaced, Open uint64
}

// Add adds the counts of o to c.
func (c *Counters) Add(o Counters) {
	c.Lost += o.Lost
	c.NoRoom += o.NoRoom
	c.Unreadable += o.Unreadable
	c.Unpaired += o.Unpaired
	c.Filtered += o.Filtered
	c.Matched += o.Matched
	c.Limited += o.Limited
	c.Replaced += o.Replaced
	c.Open += o.Open
}

// Counter is one of the words in which the programs of an event count.
type Counter uint8

// The counters.
const (
	CounterLost Counter = iota
	CounterNoRoom
	CounterUnreadable
	CounterUnpaired
	CounterFiltered
	CounterMatched
	CounterKept     // nonzero if the first matching call has been stored, see [FirstMap]
	CounterFaulted  // of [Tables]: matching calls that have a value that could not be read
	CounterFull     // of [Tables]: matching calls for whose key there was no room
	CounterReplaced // of a [BeginEvent]
	CounterOpen     // of a [BeginEvent]; may be negative on one CPU
	CounterLimited  // of events that are recorded: those that matched but were too many in their second
	CounterSecond   // of the same, in the first slot: a second, and how many programs have asked in it
)

// counters has the word of each counter in a slot, and its name in listings. A slot
// is one cache line, so it has only eight words. What the last two count depends on
// the event: no event has two counters that share a word.
var counters = [...]struct {
	word int
	name string
}{
	CounterLost:       {0, "lost"},
	CounterNoRoom:     {1, "without room"},
	CounterUnreadable: {2, "unreadable"},
	CounterUnpaired:   {3, "unpaired"},
	CounterFiltered:   {4, "filtered"},
	CounterMatched:    {5, "matched"},
	CounterKept:       {6, "kept"},
	CounterFaulted:    {6, "faulted"},
	CounterFull:       {7, "without a row"},
	CounterReplaced:   {6, "replaced"},
	CounterOpen:       {7, "open"},
	CounterLimited:    {6, "more than the rate"},
	CounterSecond:     {7, "asked"},
}

// Offset returns the offset of the counter in a slot.
func (c Counter) Offset() int { return 8 * counters[c].word }

// String returns the name of the counter in listings.
func (c Counter) String() string { return counters[c].name }

// SlotSize is the size of a slot in bytes, 2^SlotBits.
const (
	SlotBits = 6
	SlotSize = 1 << SlotBits
)

// Offsets of the words before the slots. Programs and user space communicate
// through them.
const (
	// ControlStopped is nonzero when counting has ended. From then on, the
	// programs of a unit with [Options].CountCalls do nothing.
	ControlStopped = 0
	// ControlStarter is the process whose children join the process tree
	// although it is not in the tree itself, or 0.
	ControlStarter = 8
	// ControlUnfollowed counts the processes that [TreeMap] had no room for.
	// They and their descendants are not traced.
	ControlUnfollowed = 16
	// ControlTurn is the index of the map in which calls are counted now, of tables
	// that have two, see [TableLayout].
	ControlTurn = 24

	controlSize = 64
)

// CounterLayout describes where [CountersMap] has the counters of an event.
// Each event has a few slots, so that CPUs do not wait for each other. A
// program takes the slot of its CPU and adds atomically, so nothing is lost
// when its task is preempted or moved, nor where CPUs share a slot.
type CounterLayout struct {
	Events int
	Slots  int // for each event, a power of two; 0 means 1
}

// MostCounters is the largest size of all counters in bytes. Before Linux 6.13
// an element of an array cannot be larger.
const MostCounters = 4 << 20

// Size returns the size of all counters in bytes.
func (l CounterLayout) Size() int { return l.At(l.Events, 0) }

// At returns the offset of a slot of an event.
func (l CounterLayout) At(event, slot int) int {
	return controlSize + SlotSize*(event*max(l.Slots, 1)+slot)
}

// Map returns the spec of the map that holds the counters.
func (l CounterLayout) Map() *ebpf.MapSpec {
	return &ebpf.MapSpec{
		Name: CountersMap, Type: ebpf.Array, KeySize: 4, ValueSize: uint32(l.Size()), MaxEntries: 1, Flags: mmapable,
	}
}

// mmapable is BPF_F_MMAPABLE.
const mmapable = 1 << 10

// Read returns what was counted for an event. The function load must return the word
// at an offset.
func (l CounterLayout) Read(ev *EventType, load func(off int) uint64) Counters {
	sum := func(c Counter) uint64 { return l.Sum(ev.Number, c, load) }
	c := Counters{
		Lost: sum(CounterLost), NoRoom: sum(CounterNoRoom), Unreadable: sum(CounterUnreadable), Unpaired: sum(CounterUnpaired),
		Filtered: sum(CounterFiltered), Matched: sum(CounterMatched),
	}
	switch {
	case ev.Kind == BeginEvent:
		c.Replaced, c.Open = sum(CounterReplaced), sum(CounterOpen)
	case ev.Probe.Measure == NoMeasure:
		c.Limited = sum(CounterLimited)
	}
	return c
}

// Sum adds up one counter of an event.
func (l CounterLayout) Sum(event int, counter Counter, load func(off int) uint64) (n uint64) {
	for slot := range max(l.Slots, 1) {
		n += load(l.At(event, slot) + counter.Offset())
	}
	return n
}

// Names of the maps by which user space learns that all programs have seen
// [ControlStopped] or [ControlTurn], in a unit with [Options].CountCalls or ClearTables. When BarrierInner is put
// into BarrierMap, an array of one map, the kernel waits until every running
// program has ended. Both are created with the other maps, because they may
// exceed the user's limit of locked memory later.
const (
	BarrierMap   = "barrier"
	BarrierInner = "barrier_inner"
)
