package compiler

import "github.com/cilium/ebpf"

// Names of the maps in a unit's collection.
const (
	EventsMap = "events" // ring buffer of records
	CgroupMap = "cgroup" // array that holds the one cgroup to trace
	RowMap    = "row"    // array of one element, in which the record of a row is put together, see RowStart
)

// DefaultMaxBytes is the number of bytes captured of a value by default: a
// page.
const DefaultMaxBytes = 4096

// DefaultRingBytes is room for 10,000 small records, or 200 of a page. It
// counts twice in the resident memory, because the kernel maps it twice in a
// row.
const DefaultRingBytes = 1 << 20

// Options holds what a unit depends on besides the probes. The zero value traces
// all processes.
type Options struct {
	Self uint32 // process whose calls, other than in interrupts, are never traced unless it is PID; 0 for none
	PID  uint32 // trace only this process; 0 for all
	TID  uint32 // trace only this thread; 0 for all
	// Tree, if not nil, traces only a process and its descendants. PID is the
	// process, or 0 for a process that ksnoop has yet to start.
	Tree *Tasks
	// Cgroup traces only threads in the cgroup whose directory is put into
	// [CgroupMap], or in a cgroup below it.
	Cgroup bool
	// MaxBytes is the largest number of bytes captured of one value, at most
	// [MostBytes]; 0 means [DefaultMaxBytes].
	MaxBytes int
	// RingBytes is the size of the ring buffer, a power of two from the page size up;
	// 0 means [DefaultRingBytes].
	RingBytes uint32
	// CountCalls counts every call, see [Counters]. Calls of measured probes are
	// always counted.
	CountCalls bool
	// Rate is how many events of each type may be recorded in a second of
	// CLOCK_MONOTONIC, at most [MostRate]; 0 means any number. For a chain, it limits
	// the calls of the last function. It does not apply to rows, watched memory,
	// followed objects and what is measured.
	Rate uint32
	// Keys is the number of keys that a table of aggregates has room for; 0 means
	// [DefaultKeys].
	Keys int
	// ClearTables makes tables that can be cleared while calls are counted, which takes
	// twice their memory.
	ClearTables bool
}

// Limits of [Options].
const (
	MostBytes = 1 << 20       // of MaxBytes
	MostRate  = 1_000_000_000 // of Rate
	MostKeys  = 1<<31 - 1     // of Keys
)

// Unit is a blueprint of everything to load and attach for a set of probes.
type Unit struct {
	Collection  *ebpf.CollectionSpec
	Attachments []Attachment // in the order in which to attach
	Events      []*EventType // by the number in a record's header
	Tree        *Tree        // nil if processes are not followed
	Companions  []Companion  // to attach before Attachments
	Counters    CounterLayout
	CountsCalls bool // whether every call is counted, see [Options]
	// Elements has the map indices of measured probes, see [Unit.Element].
	Elements map[*Probe]int
	Tables   []*TableLayout // one for each spec with aggregates
}

// Probes returns the probes of the unit in their order.
func (u *Unit) Probes() []*Probe {
	var probes []*Probe
	for _, ev := range u.Events {
		of := []*Probe{ev.Probe}
		if ev.Probe.Chain != nil && ev.Probe.Measure != NoMeasure { // all levels share the event
			of = ev.Probe.Chain.Of
		}
		if n := len(probes); n == 0 || probes[n-1] != ev.Probe {
			probes = append(probes, of...)
		}
	}
	return probes
}

// Iterates reports whether the probes are iterators, whose rows are not in the ring
// buffer.
func (u *Unit) Iterates() bool { return len(u.Events) > 0 && u.Events[0].Kind == RowEvent }

// Attachment puts one program on functions: on one, or with a [Kind.Multi] kind
// on many at once.
type Attachment struct {
	Program string // name in Collection
	Kind    Kind
	Places  []Place
	// Jumps has the names of the programs that Program jumps to, by their index
	// in JumpMap: each place has its own. If there are none, Program is that of
	// all places.
	Jumps   []string
	JumpMap string // name in Collection
	// ReturnInstances is the number of concurrent calls to ask for, or 0 if the
	// kernel sets no limit.
	ReturnInstances int
}

// Place is one function or tracepoint to attach to.
type Place struct {
	Probe *Probe
	// Symbol is the name to attach to.
	Symbol string
	// Addr is the address to attach to, or 0 to attach to the symbol.
	Addr uint64
	// Offset is the distance from that place in bytes, for kprobes.
	Offset uint64
	// Cookie is the number that bpf_get_attach_cookie returns in the program, for
	// [Kind.Multi] kinds.
	Cookie uint64
	// Jump is the index of the place's program in [Attachment].Jumps.
	Jump int
}

// ProgramAt returns the name of the program of a place.
func (a Attachment) ProgramAt(p Place) string {
	if len(a.Jumps) == 0 {
		return a.Program
	}
	return a.Jumps[p.Jump]
}

// Programs returns the names of all programs of the attachment.
func (a Attachment) Programs() []string { return append([]string{a.Program}, a.Jumps...) }
