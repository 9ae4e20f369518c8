package codegen

import (
	"fmt"
	"slices"
	"sort"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// options are the options of a unit, and what its probes share of the target.
type options struct {
	compiler.Options
	Arch     *compiler.Arch
	Features compiler.Features
}

// ofAllProcesses returns the options of a program that does not choose by process,
// because another program does.
func (o options) ofAllProcesses() options {
	o.PID, o.TID, o.Tree, o.Cgroup, o.Self = 0, 0, nil, false, 0
	return o
}

// cancels reports whether the entry side of a kind cancels the return of the calls
// that it rejects.
func (o options) cancels(kind compiler.Kind) bool {
	return kind == compiler.KprobeSession && !o.Features.CancelRepeats
}

// complete returns the options with defaults in place of zero values.
func complete(o compiler.Options, probes []*compiler.Probe) options {
	if o.MaxBytes == 0 {
		o.MaxBytes = compiler.DefaultMaxBytes
	}
	if o.RingBytes == 0 {
		o.RingBytes = compiler.DefaultRingBytes
	}
	o.CountCalls = o.CountCalls || measures(probes)
	all := options{Options: o}
	if len(probes) > 0 {
		all.Arch, all.Features = probes[0].Arch, probes[0].Features
	}
	return all
}

// checkRanges returns an error if an option is out of its range.
func checkRanges(o compiler.Options) error {
	for _, n := range []struct {
		name     string
		is, most int
	}{{"MaxBytes", o.MaxBytes, compiler.MostBytes}, {"Keys", o.Keys, compiler.MostKeys}, {"Rate", int(o.Rate), compiler.MostRate}} {
		if n.is < 0 || n.is > n.most {
			return fmt.Errorf("compile with %s of %d: it must be 0 to %d", n.name, n.is, n.most)
		}
	}
	if n := o.RingBytes; n%leastRing != 0 || n&(n-1) != 0 {
		return fmt.Errorf("compile with RingBytes of %d: it must be a power of two from %d up", n, leastRing)
	}
	return nil
}

// leastRing is the smallest page.
const leastRing = 4096

// generator builds a unit.
type generator struct {
	*compiler.Unit
	first   map[*compiler.Probe]int // number of the first event
	index   map[*compiler.Probe]int // number of the probe
	shared  map[string]int          // attachments of programs that functions may share, by their code
	used    map[string]int          // number of such attachments that have a place at a symbol
	stashes []*stash                // what is kept of calls
	threads threads                 // where it is kept
	tables  map[*compiler.Probe]*compiler.TableLayout
	spans   map[*compiler.Span]*beginnings
	notes   map[notes]asm.Metadata // of instructions that are kept
	scratch code                   // the program that is being generated
	hashed  []byte                 // what is hashed of it, see signature
}

// Compile lays out the records of probes and generates their programs. It returns an
// error with what to ask for instead if something is larger than the kernel or the
// options allow: a record, what is kept of a call, a table, or the number of events or
// histograms. It is a [*spec.Error], but for the two numbers, which concern no single spec,
// and for an option that is out of its range.
func Compile(probes []*compiler.Probe, opts compiler.Options) (*compiler.Unit, error) {
	u, err := generate(probes, opts)
	if err != nil {
		return nil, err
	}
	return u.Unit, nil
}

func generate(probes []*compiler.Probe, o compiler.Options) (*generator, error) {
	if err := checkRanges(o); err != nil {
		return nil, err
	}
	opts := complete(o, probes)
	u := newGenerator(probes, opts)
	var err error
	if u.Counters, err = newCounterLayout(countEvents(probes), opts.Features.CPUs); err != nil {
		return nil, err
	}
	if err := u.addMeasures(probes); err != nil {
		return nil, err
	}
	u.addBarrier(opts)
	u.addBusy(probes, opts)
	u.addPreempt(opts)
	var sides []func() // generators, to run when it is known what is kept
	if len(probes) > 0 && probes[0].Chain != nil {
		sides = u.addChain(probes, opts)
	} else {
		for i, p := range probes {
			sides = append(sides, u.add(i, p, opts))
		}
	}
	if err := u.checkDiffs(); err != nil {
		return nil, err
	}
	u.addThreads(probes, opts)
	if err := u.addTables(opts); err != nil {
		return nil, err
	}
	for _, programs := range sides {
		programs()
	}
	for _, ev := range u.Events {
		if err := checkSize(ev, opts.RingBytes); err != nil {
			return nil, err
		}
	}
	u.addFirst(probes)
	u.addRate(opts)
	u.addRowMap()
	u.joinLinks(opts.Features)
	u.fixCookies()
	u.addWatched()
	u.addMap(compiler.EventsMap, ebpf.RingBuf, 0, 0, int(opts.RingBytes))
	u.Collection.Maps[compiler.CountersMap] = u.Counters.Map()
	if opts.Tree != nil {
		u.addTree(opts)
	}
	if opts.Cgroup {
		u.addMap(compiler.CgroupMap, ebpf.CGroupArray, 4, 4, 1)
	}
	u.orderAttachments()
	return u, nil
}

func newGenerator(probes []*compiler.Probe, opts options) *generator {
	u := &generator{
		Unit: &compiler.Unit{
			Collection: &ebpf.CollectionSpec{Maps: map[string]*ebpf.MapSpec{}, Programs: map[string]*ebpf.ProgramSpec{}},
			Elements:   map[*compiler.Probe]int{},
		},
		tables: map[*compiler.Probe]*compiler.TableLayout{}, spans: map[*compiler.Span]*beginnings{},
		first: map[*compiler.Probe]int{}, index: map[*compiler.Probe]int{}, shared: map[string]int{}, used: map[string]int{},
		notes: map[notes]asm.Metadata{},
	}
	for i, p := range probes {
		u.index[p] = i
	}
	u.CountsCalls = opts.CountCalls
	return u
}

// addMap adds a map with n elements to the collection, and returns it.
func (u *generator) addMap(name string, t ebpf.MapType, keySize, valueSize, n int) *ebpf.MapSpec {
	m := &ebpf.MapSpec{Name: name, Type: t, KeySize: uint32(keySize), ValueSize: uint32(valueSize), MaxEntries: uint32(n)}
	u.Collection.Maps[name] = m
	return m
}

// orderAttachments sorts the attachments. Return sides are attached first: a return
// without its entry is dropped, but an entry without its return would be kept for ever.
func (u *generator) orderAttachments() {
	sort.SliceStable(u.Attachments, func(i, j int) bool {
		a, b := u.Attachments[i], u.Attachments[j]
		order := rank(a) - rank(b)
		if order == 0 && a.Places[0].Probe.Follow != nil { // attaching takes longer the more places are attached already
			order = len(a.Places) - len(b.Places)
		}
		return order < 0
	})
}

// rank returns the place of an attachment in the order: 0 for return sides, 1 for the
// rest, 2 for the beginnings of spans. The programs of a tracepoint run in the order in
// which they are attached, so that a span that begins and ends at the same tracepoint
// ends before the next one begins.
func rank(a compiler.Attachment) int {
	if a.Places[0].Probe.Begins() {
		return 2
	}
	switch a.Kind {
	case compiler.Fexit, compiler.Kretprobe, compiler.KretprobeMulti:
		return 0
	}
	return 1
}

// add creates the events of a probe and returns a function that generates its
// programs.
func (u *generator) add(i int, p *compiler.Probe, opts options) func() {
	if p.Span != nil {
		return u.addPoint(i, p, opts)
	}
	if p.Follow != nil {
		return u.addFollow(i, p, opts)
	}
	var entry, ret *compiler.EventType
	if p.Func.Iterator {
		return u.addIterator(i, p, opts)
	}
	if p.OnEntry {
		kind := compiler.EntryEvent
		if p.Watch != nil {
			kind = compiler.WriteEvent
		}
		entry = u.event(p, kind, p.Entry, extras{}, opts)
	}
	if p.OnReturn {
		kind, items := compiler.ReturnEvent, p.Return
		if p.Paired {
			kind, items = compiler.CallEvent, slices.Concat(p.Entry, p.Return)
		}
		ret = u.event(p, kind, items, extrasOf(p), opts)
	}
	var s *stash
	if p.Stash {
		s = u.addStash(ret)
	}
	cancels := opts.cancels(p.Attach.Entry)
	entrySide := func(c *code) {
		ev := entry
		if ev == nil {
			ev = ret
		}
		prog := u.newProgram(c, p, compiler.AtEntry, p.Attach.Entry, ev, opts)
		if entry != nil && ret != nil && (s != nil || cancels) {
			prog.decides(ret)
		}
		prog.entry(entry != nil, s)
	}
	returnSide := func(c *code) {
		opts := opts
		if entry != nil && s == nil && cancels {
			opts = opts.ofAllProcesses()
		}
		u.newProgram(c, p, compiler.AtReturn, p.Attach.Return, ret, opts).ret(s)
	}
	return func() { u.sides(i, p, opts, entrySide, returnSide) }
}

// extrasOf returns what an event at return needs of the entry besides items. A
// stash without outcomes and items keeps the time.
func extrasOf(p *compiler.Probe) extras {
	flags, operands := len(p.Outcomes) > 0, 0
	if p.Stash {
		operands = len(p.Operands)
	}
	return extras{operands: operands, start: p.Timed || p.Stash && !flags && (!p.Paired || len(p.Entry) == 0), flags: flags}
}

func (u *generator) event(p *compiler.Probe, kind compiler.EventKind, items []*compiler.Value, has extras, opts options) *compiler.EventType {
	switch {
	case p.Measure == compiler.Tables && len(p.Diffs) == 0:
		opts.MaxBytes = compiler.MostKeyPart
	case p.Measure == compiler.Tables:
		opts.MaxBytes = max(opts.MaxBytes, compiler.MostKeyPart)
	case p.Measure != compiler.NoMeasure && len(p.Diffs) == 0:
		opts.MaxBytes = compiler.MostCompared
	}
	ev := &compiler.EventType{Number: len(u.Events), Probe: p, Kind: kind, Items: items}
	ev.Layout = newLayout(items, len(ev.Kept()), has, opts.MaxBytes)
	if _, ok := u.first[p]; !ok {
		u.first[p] = ev.Number
	}
	u.Events = append(u.Events, ev)
	return ev
}
