package compiler

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
)

// Names of the maps in a unit's collection.
const (
	EventsMap   = "events"   // ring buffer of records
	CountersMap = "counters" // per-CPU array of [Counters], one for each event
	CgroupMap   = "cgroup"   // array of the one cgroup to trace
)

// Counters is what a unit's programs count for each event.
type Counters struct {
	Lost       uint64 // records that found the ring buffer full
	NoRoom     uint64 // calls that found no room to keep their entry values
	Unreadable uint64 // calls with a predicate on a value that could not be read
	Unpaired   uint64 // entries whose return was missed, returns whose entry was
	// Filtered and Matched are only counted with [Options].Tally: calls that
	// are not shown, and those that are, or would be if they were not lost.
	// A call counts when its fate is known.
	Filtered, Matched uint64

	_ uint64 // not 0 if the first call that matched is kept, see [FirstMap]
}

// Add adds what another CPU has counted.
func (c *Counters) Add(o Counters) {
	c.Lost += o.Lost
	c.NoRoom += o.NoRoom
	c.Unreadable += o.Unreadable
	c.Unpaired += o.Unpaired
	c.Filtered += o.Filtered
	c.Matched += o.Matched
}

// Offsets in Counters.
const (
	counterLost       = 0
	counterNoRoom     = 8
	counterUnreadable = 16
	counterUnpaired   = 24
	counterFiltered   = 32
	counterMatched    = 40
	counterKept       = 48
	countersSize      = 56
)

// counterNames are what listings call the counters.
var counterNames = map[int]string{
	counterLost: "lost", counterNoRoom: "without room", counterUnreadable: "unreadable", counterUnpaired: "unpaired",
	counterFiltered: "filtered", counterMatched: "matched",
}

// DefaultMaxBytes is how much of a value is captured: a page.
const DefaultMaxBytes = 4096

// Options holds what a unit depends on besides the probes.
type Options struct {
	Self uint32 // process that is never traced; 0: none
	PID  uint32 // trace only this process; 0: all
	TID  uint32 // trace only this thread; 0: all
	// Tree: trace only a process and its descendants. PID is the process, or
	// 0 for one that ksnoop is yet to start.
	Tree *Tasks
	// Cgroup: trace only threads in the cgroup, or below it, whose directory
	// is put into [CgroupMap].
	Cgroup bool
	// MaxBytes bounds what is captured of one value; 0 means
	// [DefaultMaxBytes].
	MaxBytes int
	// RingBytes is the size of the ring buffer, a power of two and of the
	// page size.
	RingBytes uint32
	// Tally: every call is counted, see [Counters]. So it is with a probe that
	// is measured.
	Tally    bool
	Features Features
	Arch     *Arch
}

// Unit is a blueprint of everything to load and attach for a set of probes.
type Unit struct {
	Collection  *ebpf.CollectionSpec
	Attachments []Attachment // in the order in which to attach
	Events      []*Event     // by the number in a record's header
	Tree        *Tree        // nil: processes are not followed

	first    map[*Probe]int // number of the first event
	index    map[*Probe]int // number of the probe
	elements map[*Probe]int // what is measured, see [Unit.Element]
	shared   map[string]int // attachments of programs that many functions may have, by what they do
	used     map[string]int // how many of them have a place at a symbol
}

// Compile lays out the records of probes and generates their programs.
func Compile(probes []*Probe, opts Options) (*Unit, error) {
	if opts.MaxBytes == 0 {
		opts.MaxBytes = DefaultMaxBytes
	}
	u := &Unit{Collection: &ebpf.CollectionSpec{
		Maps:     map[string]*ebpf.MapSpec{},
		Programs: map[string]*ebpf.ProgramSpec{},
	}, first: map[*Probe]int{}, index: map[*Probe]int{}, elements: map[*Probe]int{}, shared: map[string]int{}, used: map[string]int{}}
	for i, p := range probes {
		u.index[p] = i
	}
	opts.Tally = opts.Tally || measures(probes)
	if err := u.addMeasures(probes); err != nil {
		return nil, err
	}
	u.addSwitch(opts)
	u.addBusy(probes)
	if len(probes) > 0 && probes[0].Chain != nil {
		u.addChain(probes, opts)
	} else {
		for i, p := range probes {
			u.add(i, p, opts)
		}
	}
	for _, ev := range u.Events {
		if err := ev.checkSize(opts.RingBytes); err != nil {
			return nil, err
		}
	}
	u.addFirst(probes)
	u.Collection.Maps[EventsMap] = &ebpf.MapSpec{Name: EventsMap, Type: ebpf.RingBuf, MaxEntries: opts.RingBytes}
	u.Collection.Maps[CountersMap] = &ebpf.MapSpec{
		Name: CountersMap, Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: countersSize, MaxEntries: uint32(len(u.Events)),
	}
	if opts.Tree != nil {
		u.addTree(opts)
	}
	if opts.Cgroup {
		u.Collection.Maps[CgroupMap] = &ebpf.MapSpec{
			Name: CgroupMap, Type: ebpf.CGroupArray, KeySize: 4, ValueSize: 4, MaxEntries: 1,
		}
	}
	// Return sides first: a return without its entry is dropped, but an
	// entry without its return would be kept for ever.
	slices.SortStableFunc(u.Attachments, func(a, b Attachment) int { return a.order() - b.order() })
	return u, nil
}

// add makes the events of a probe and the programs of its sides.
func (u *Unit) add(i int, p *Probe, opts Options) {
	var entry, ret *Event
	if p.OnEntry {
		entry = u.event(p, EntryEvent, p.Entry, extras{}, opts)
	}
	if p.OnReturn {
		kind, items := ReturnEvent, p.Return
		if p.Paired {
			kind, items = CallEvent, slices.Concat(p.Entry, p.Return)
		}
		ret = u.event(p, kind, items, p.extras(), opts)
	}
	var s *stash
	if p.Stash {
		s = u.addStash(i, ret, p.Attach.Return, opts)
	}
	entrySide := func(c *code) {
		ev := entry
		if ev == nil {
			ev = ret
		}
		prog := u.newProgram(c, p, AtEntry, p.Attach.Entry, ev, opts)
		if entry != nil && ret != nil && (s != nil || prog.kind == Session && !opts.Features.CancelRepeats) {
			prog.decides(ret)
		}
		prog.entry(entry != nil, s)
	}
	returnSide := func(c *code) { u.newProgram(c, p, AtReturn, p.Attach.Return, ret, opts).ret(s) }
	u.sides(i, p, opts, entrySide, returnSide)
}

// extras are what an event at return needs of the entry besides items. A stash
// keeps at least the time.
func (p *Probe) extras() extras {
	flags := len(p.Flags) > 0
	return extras{start: p.Timed || p.Stash && !flags && (!p.Paired || len(p.Entry) == 0), flags: flags}
}

func (u *Unit) event(p *Probe, kind EventKind, items []*Value, has extras, opts Options) *Event {
	if p.Measure != NoMeasure {
		opts.MaxBytes = mostCompared
	}
	ev := &Event{Number: len(u.Events), Probe: p, Kind: kind, Items: items, Layout: newLayout(items, has, opts.MaxBytes)}
	if _, ok := u.first[p]; !ok {
		u.first[p] = ev.Number
	}
	u.Events = append(u.Events, ev)
	return ev
}

// checkSize refuses records that the ring buffer, or a store, cannot hold.
func (ev *Event) checkSize(ring uint32) error {
	name, l := ev.Probe.Func.Name, ev.Layout
	if ev.Probe.Measure == NoMeasure && l.Size+8 > int(ring) {
		return fmt.Errorf("a record of %s takes %d bytes, more than the ring buffer of %d: record less, or make it larger", name, l.Size, ring)
	}
	for _, s := range l.Slots {
		if s.Off+8 > maxStore {
			return fmt.Errorf("%s has %d values, more than fit in one record: name fewer", name, len(ev.Items))
		}
	}
	return nil
}

// Probes lists the probes of the unit in their order.
func (u *Unit) Probes() []*Probe {
	var probes []*Probe
	for _, ev := range u.Events {
		of := []*Probe{ev.Probe}
		if ev.Probe.Chain != nil && ev.Probe.Measure != NoMeasure { // the event is that of all levels
			of = ev.Probe.Chain.Of
		}
		if n := len(probes); n == 0 || probes[n-1] != ev.Probe {
			probes = append(probes, of...)
		}
	}
	return probes
}
