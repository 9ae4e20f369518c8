package compiler

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// Names of the maps in a unit's collection.
const (
	EventsMap   = "events"   // ring buffer of records
	CountersMap = "counters" // per-CPU array of [Counters], one for each event
)

// Counters is what a unit's programs count for each event.
type Counters struct {
	Lost   uint64 // records that found the ring buffer full
	NoRoom uint64 // calls that found no room to keep their entry values
}

const (
	countersSize  = 16
	counterLost   = 0
	counterNoRoom = 8
)

// DefaultMaxBytes is how much of a value is captured: a page.
const DefaultMaxBytes = 4096

// Options holds what a unit depends on besides the probes.
type Options struct {
	Self uint32 // process that is never traced; 0: none
	PID  uint32 // trace only this process; 0: all
	TID  uint32 // trace only this thread; 0: all
	// MaxBytes bounds what is captured of one value; 0 means
	// [DefaultMaxBytes].
	MaxBytes int
	// RingBytes is the size of the ring buffer, a power of two and of the
	// page size.
	RingBytes uint32
	Features  Features
	Arch      *Arch
}

// Unit is a blueprint of everything to load and attach for a set of probes.
type Unit struct {
	Collection  *ebpf.CollectionSpec
	Attachments []Attachment // in the order in which to attach
	Events      []*Event     // by the number in a record's header
}

// Attachment puts one program on one function.
type Attachment struct {
	Program string // name in Collection
	Kind    Kind
	Probe   *Probe
	// ReturnInstances is the number of concurrent calls to ask for; 0: the
	// kernel sets no limit.
	ReturnInstances int
}

// Compile lays out the records of probes and generates their programs.
func Compile(probes []*Probe, opts Options) (*Unit, error) {
	if opts.MaxBytes == 0 {
		opts.MaxBytes = DefaultMaxBytes
	}
	u := &Unit{Collection: &ebpf.CollectionSpec{
		Maps:     map[string]*ebpf.MapSpec{},
		Programs: map[string]*ebpf.ProgramSpec{},
	}}
	for i, p := range probes {
		u.add(i, p, opts)
	}
	for _, ev := range u.Events {
		if err := ev.checkSize(opts.RingBytes); err != nil {
			return nil, err
		}
	}
	u.Collection.Maps[EventsMap] = &ebpf.MapSpec{Name: EventsMap, Type: ebpf.RingBuf, MaxEntries: opts.RingBytes}
	u.Collection.Maps[CountersMap] = &ebpf.MapSpec{
		Name: CountersMap, Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: countersSize, MaxEntries: uint32(len(u.Events)),
	}
	// Return sides first: a return without its entry is dropped, but an
	// entry without its return would be kept for ever.
	slices.SortStableFunc(u.Attachments, func(a, b Attachment) int { return a.order() - b.order() })
	return u, nil
}

func (a Attachment) order() int {
	if a.Kind == Fexit || a.Kind == Kretprobe {
		return 0
	}
	return 1
}

func (u *Unit) add(i int, p *Probe, opts Options) {
	if p.OnEntry {
		ev := u.event(p, EntryEvent, p.Entry, false, opts)
		u.program(i, p, p.Attach.Entry, newProgram(u, ev, p.Attach.Entry, opts).record())
	}
	if !p.OnReturn {
		return
	}
	if !p.Paired {
		ev := u.event(p, ReturnEvent, p.Return, false, opts)
		u.program(i, p, p.Attach.Return, newProgram(u, ev, p.Attach.Return, opts).record())
		return
	}
	ev := u.event(p, CallEvent, slices.Concat(p.Entry, p.Return), p.Stash, opts)
	if !p.Stash {
		u.program(i, p, p.Attach.Return, newProgram(u, ev, p.Attach.Return, opts).record())
		return
	}
	s := u.addStash(i, ev, opts)
	u.program(i, p, p.Attach.Entry, newProgram(u, ev, p.Attach.Entry, opts).keep(s))
	u.program(i, p, p.Attach.Return, newProgram(u, ev, p.Attach.Return, opts).complete(s))
}

func (u *Unit) event(p *Probe, kind EventKind, items []*Item, start bool, opts Options) *Event {
	ev := &Event{Probe: p, Kind: kind, Items: items, Layout: newLayout(items, start, opts.MaxBytes)}
	u.Events = append(u.Events, ev)
	return ev
}

// checkSize refuses records that the ring buffer, or a store, cannot hold.
func (ev *Event) checkSize(ring uint32) error {
	name, l := ev.Probe.Func.Name, ev.Layout
	if l.Size+8 > int(ring) {
		return fmt.Errorf("a record of %s takes %d bytes, more than the ring buffer of %d: record less, or make it larger", name, l.Size, ring)
	}
	for _, s := range l.Slots {
		if s.Off+8 > maxStore {
			return fmt.Errorf("%s has %d values, more than fit in one record: name fewer", name, len(ev.Items))
		}
	}
	return nil
}

// number is the number of an event in record headers.
func (u *Unit) number(ev *Event) int { return slices.Index(u.Events, ev) }

// license is what the kernel's GPL-only helpers ask for.
const license = "Dual MIT/GPL"

func (u *Unit) program(i int, p *Probe, kind Kind, insns asm.Instructions) {
	name := fmt.Sprintf("%s on %s (probe %d)", kind, p.Func.Name, i)
	ps := &ebpf.ProgramSpec{Name: p.Func.Name, Type: ebpf.Kprobe, Instructions: insns, License: license}
	if kind.trampoline() {
		ps.Type, ps.AttachTo = ebpf.Tracing, p.Func.Name
		ps.AttachType = map[Kind]ebpf.AttachType{Fentry: ebpf.AttachTraceFEntry, Fexit: ebpf.AttachTraceFExit}[kind]
	}
	u.Collection.Programs[name] = ps
	a := Attachment{Program: name, Kind: kind, Probe: p}
	if kind == Kretprobe {
		a.ReturnInstances = p.Attach.ReturnInstances
	}
	u.Attachments = append(u.Attachments, a)
}

// Probes lists the probes of the unit in their order.
func (u *Unit) Probes() []*Probe {
	var probes []*Probe
	for _, ev := range u.Events {
		if !slices.Contains(probes, ev.Probe) {
			probes = append(probes, ev.Probe)
		}
	}
	return probes
}
