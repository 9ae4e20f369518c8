package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// Counts holds the counts of the calls of a function since the start of the run. A
// nil field is not counted.
type Counts struct {
	Hits       *uint64 `json:"hits,omitempty"`
	Filtered   *uint64 `json:"filtered,omitempty"`
	Matched    *uint64 `json:"matched,omitempty"`
	Delivered  *uint64 `json:"delivered,omitempty"`
	Lost       *uint64 `json:"lost,omitempty"`
	NoRoom     *uint64 `json:"noroom,omitempty"`
	Missed     *uint64 `json:"missed,omitempty"`
	Unreadable *uint64 `json:"unreadable,omitempty"`
	Unpaired   *uint64 `json:"unpaired,omitempty"`
	Unread     *uint64 `json:"unread,omitempty"`
	Limited    *uint64 `json:"limited,omitempty"`
	// Replaced and Open are counts of the beginnings of spans.
	Replaced *uint64 `json:"replaced,omitempty"`
	Open     *uint64 `json:"open,omitempty"`
}

// ProbeSummary holds what was counted for one kind of event.
type ProbeSummary struct {
	ProbeName
	Counts
}

// Loss reports that a probe has lost something since the last report, with all
// counts so far, or what functions that share programs have missed so far.
type Loss struct {
	Time time.Duration // CLOCK_MONOTONIC, as of events
	ProbeSummary
	Shared []SharedMissed // in place of a ProbeSummary, or nil
}

// Summary holds the counts of a run.
type Summary struct {
	Probes []ProbeSummary // one for each kind of event
	Shared []SharedMissed
}

// SharedMissed counts the calls that the kernel skipped of functions that share a
// program: only the sum is known.
type SharedMissed struct {
	Attach string
	Funcs  []string
	Missed uint64
}

// String returns the counts as a sentence.
func (m *SharedMissed) String() string {
	return fmt.Sprintf("the %d functions by %s that begin with %s missed %d in all", len(m.Funcs), m.Attach, PlainName(m.Funcs[0]), m.Missed)
}

// NewSummary returns the counts of a unit's session as the formats print them.
func NewSummary(unit *compiler.Unit, a runtime.SessionCounts) Summary {
	var s Summary
	attached := AttachKinds(unit)
	for _, n := range a.Events {
		s.Probes = append(s.Probes, ProbeSummary{newProbeName(n.EventType, attached[n.Probe]), newCounts(unit, n)})
	}
	for _, m := range a.Missed {
		s.addMissed(a.Events, m)
	}
	return s
}

// NewLosses returns a Loss for each event of a unit that has lost something, and one
// for all functions that share a program and have missed calls. missed has what the
// programs of these have missed.
func NewLosses(unit *compiler.Unit, grown []runtime.Counts, missed []runtime.Missed, at time.Duration) (all []Loss) {
	s := NewSummary(unit, runtime.SessionCounts{Events: grown, Missed: missed})
	for _, p := range s.Probes {
		all = append(all, Loss{Time: at, ProbeSummary: p})
	}
	if s.Shared != nil {
		all = append(all, Loss{Time: at, Shared: s.Shared})
	}
	return all
}

func newCounts(unit *compiler.Unit, n runtime.Counts) Counts {
	c := Counts{Delivered: &n.Delivered, Lost: &n.Lost, NoRoom: &n.NoRoom, Unreadable: &n.Unreadable, Unpaired: &n.Unpaired}
	if unit.CountsCalls {
		if n.Probe.Follow != nil { // only calls that find an object to watch, or end it
			n.Matched = n.Delivered + n.Lost + n.Unread
		}
		hits := n.Filtered + n.Matched
		c.Hits, c.Filtered, c.Matched = &hits, &n.Filtered, &n.Matched
	}
	if n.Unread > 0 {
		c.Unread = &n.Unread
	}
	if n.Limited > 0 {
		c.Limited = &n.Limited
	}
	if n.Kind == compiler.BeginEvent {
		c.Replaced, c.Open = &n.Replaced, &n.Open
	}
	return c
}

// addMissed adds what was missed by one program to the events that it writes.
func (s *Summary) addMissed(events []runtime.Counts, m runtime.Missed) {
	switch {
	case m.Uncounted && m.N == 0:
	case len(m.Probes) > 1:
		shared := SharedMissed{Attach: string(m.Kind), Missed: m.N}
		for _, p := range m.Probes {
			shared.Funcs = append(shared.Funcs, FunctionName(p.Func))
		}
		s.Shared = append(s.Shared, shared)
	default:
		for i, n := range events {
			if p := &s.Probes[i]; n.Probe == m.Probes[0] && p.attachedBy(m.Kind) {
				p.Missed = sum(p.Missed, m.N)
			}
		}
	}
}

func sum(known *uint64, n uint64) *uint64 {
	if known != nil {
		n += *known
	}
	return &n
}

// ProbeName identifies a kind of event.
type ProbeName struct {
	Func   string
	Module string // "" for vmlinux
	Kind   string // entry, return or call
	Attach string // attach kinds, entry first, joined by +
	// Group and Event are set for a kprobe_events line.
	Group, Event string
}

// newProbeName names an event. attached are the attach kinds of its probe, of which
// it takes those of the programs that write the event.
func newProbeName(ev *compiler.EventType, attached []string) ProbeName {
	switch last := len(attached) - 1; {
	case last < 1:
	case ev.Kind == compiler.EntryEvent:
		attached = attached[:1]
	case ev.Kind == compiler.ReturnEvent && !ev.Probe.Stash && ev.Probe.Chain == nil:
		attached = attached[last:]
	}
	fn := ev.Probe.Func
	name := ProbeName{Func: FunctionName(fn), Module: fn.Module, Kind: sides[ev.Kind], Attach: strings.Join(attached, "+")}
	if isLine(ev) {
		name.Group, name.Event = ev.Probe.Trace.GroupName(), ev.Probe.Trace.EventName()
	}
	return name
}

func (n ProbeName) attachedBy(kind compiler.Kind) bool {
	return slices.Contains(strings.Split(n.Attach, "+"), string(kind))
}

// AttachKinds returns the names of the attach kinds of each probe, entry first.
func AttachKinds(unit *compiler.Unit) map[*compiler.Probe][]string {
	kinds := map[*compiler.Probe][]string{}
	for _, a := range slices.Backward(unit.Attachments) { // returns are attached first
		for _, place := range a.Places {
			if have := kinds[place.Probe]; !slices.Contains(have, string(a.Kind)) {
				kinds[place.Probe] = append(have, string(a.Kind))
			}
		}
	}
	return kinds
}

// Text returns a table with a row for each kind of event, at most width columns
// wide. A count that is not kept is "-".
func (s Summary) Text(width int) string {
	head := []string{"FUNCTION", "KIND", "ATTACH", "HITS", "FILTERED", "MATCHED", "SHOWN", "LOST", "MISSED", "NO ROOM", "UNREADABLE", "UNPAIRED"}
	limited := slices.ContainsFunc(s.Probes, func(p ProbeSummary) bool { return p.Limited != nil })
	if limited {
		head = append(head, "LIMITED")
	}
	spans := slices.ContainsFunc(s.Probes, func(p ProbeSummary) bool { return p.Open != nil })
	if spans {
		head = append(head, "REPLACED", "OPEN")
	}
	t := NewTable(head...)
	for _, p := range s.Probes {
		row := []string{PlainName(p.Func), p.Kind, p.Attach}
		counts := []*uint64{p.Hits, p.Filtered, p.Matched, p.Delivered, p.Lost, p.Missed, p.NoRoom, p.Unreadable, p.Unpaired}
		if limited {
			counts = append(counts, p.Limited)
		}
		if spans {
			counts = append(counts, p.Replaced, p.Open)
		}
		for _, n := range counts {
			cell := "-"
			if n != nil {
				cell = strconv.FormatUint(*n, 10)
			}
			row = append(row, cell)
		}
		t.Row(row...)
	}
	var text strings.Builder
	text.WriteString(t.Fit(width))
	for _, m := range s.Shared {
		fmt.Fprintf(&text, "  %s\n", &m)
	}
	return text.String()
}

// Losses returns a sentence for each kind of loss, and if verbose also for what is
// not counted.
func Losses(a runtime.SessionCounts, verbose bool) (all []string) {
	for _, n := range a.Events {
		if n.Probe.Follow != nil {
			all = append(all, lossesOfFollowed(SideName(n.EventType), n.Counters)...)
			continue
		}
		if n.Kind == compiler.BeginEvent {
			all = append(all, openOf(FunctionName(n.Probe.Func), n.Counters)...)
			continue
		}
		switch {
		case n.Probe.Func.Iterator:
			all = append(all, lossesOfRows(FunctionName(n.Probe.Func), n.Counters)...)
		case n.Kind == compiler.WriteEvent:
			all = append(all, lossesOfWrites(FunctionName(n.Probe.Func), n.Counters)...)
		default:
			all = append(all, lossesOf(SideName(n.EventType), n.Counters)...)
		}
		pointers := n.Probe.StringConds()
		if n.Unreadable > 0 && n.Delivered+n.Lost+n.Unread == 0 && len(pointers) > 0 {
			all = append(all, fmt.Sprintf("no string that %s points to could be read in kernel memory: if it points to user memory, write %s:ustring",
				pointers[0], pointers[0]))
		}
	}
	if a.Unfollowed > 0 {
		all = append(all, fmt.Sprintf("did not follow %d processes, nor their descendants: more than %d were in the tree at once, or the kernel skipped them",
			a.Unfollowed, compiler.TreeRoom))
	}
	for _, m := range a.Missed {
		if m.Uncounted && verbose {
			all = append(all, fmt.Sprintf("this kernel does not count all calls of %s that it skips for %s", missedOf(m.Probes), m.Kind))
		}
		if m.N > 0 && m.Kind == compiler.Breakpoint {
			all = append(all, fmt.Sprintf("missed %d writes to %s: a BPF program or bpf(2) has written, and the kernel runs no program meanwhile", m.N, missedOf(m.Probes)))
			continue
		}
		if m.N > 0 {
			all = append(all, fmt.Sprintf("missed %d calls of %s: the kernel skipped them%s", m.N, missedOf(m.Probes), skipReason(m.Kind)))
		}
	}
	return all
}

// SideName returns the name of a function, with the side of its calls if an event
// shows only one.
func SideName(ev *compiler.EventType) string {
	name := FunctionName(ev.Probe.Func)
	if ev.Kind == compiler.EntryEvent || ev.Kind == compiler.ReturnEvent {
		name += " (" + ev.Kind.String() + ")"
	}
	return name
}

// missedOf names functions for which only the sum of misses is known.
func missedOf(probes []*compiler.Probe) string {
	name := FunctionName(probes[0].Func)
	if n := len(probes); n > 1 {
		return fmt.Sprintf("%s and %d others", name, n-1)
	}
	return name
}

// skipReason returns why the kernel skips calls with an attach kind.
func skipReason(k compiler.Kind) string {
	switch k {
	case compiler.Fentry, compiler.Fexit:
		return ", as the program was running on that CPU already (--attach kprobe may miss fewer)"
	case compiler.Kretprobe, compiler.KretprobeMulti, compiler.KprobeSession:
		return ", as too many were active at once, or a program was running on that CPU already"
	}
	return ", as a program was running on that CPU already"
}

// lossesOf returns a sentence for each kind of loss of a function.
func lossesOf(name string, n compiler.Counters) []string {
	return sentences(name, []fate{
		{n.Lost, "lost %d events of %s: the ring buffer was full; --pages makes it larger"},
		{n.Limited, "left out %d events of %s: there were more in a second than --rate allows"},
		{n.NoRoom, "missed %d calls of %s: too many calls were active at once"},
		{n.Unreadable, "did not show %d calls of %s: a value in a condition could not be read"},
		{n.Unpaired, "dropped %d calls of %s: the entry or the return was missed"},
	})
}

// lossesOfFollowed returns a sentence for each kind of loss of a function that gets
// objects that are followed.
func lossesOfFollowed(name string, n compiler.Counters) []string {
	return sentences(name, []fate{
		{n.Lost, "lost %d events of %s: the ring buffer was full; --pages makes it larger"},
		{n.NoRoom, "did not follow %d objects of %s: " + fmt.Sprint(compiler.MostObjects) + " others were followed, or one began at the same moment"},
		{n.Unreadable, "did not show %d calls of %s: a value in a condition could not be read"},
	})
}

// lossesOfRows returns a sentence for each kind of loss of an iterator.
func lossesOfRows(name string, n compiler.Counters) []string {
	return sentences(name, []fate{{n.Unreadable, "did not show %d objects of %s: a value in a condition could not be read"}})
}

// lossesOfWrites returns a sentence for each kind of loss of watched memory.
func lossesOfWrites(name string, n compiler.Counters) []string {
	return sentences(name, []fate{
		{n.Lost, "lost %d events of %s: the ring buffer was full; --pages makes it larger"},
		{n.Limited, "left out %d events of %s: there were more in a second than --rate allows"},
		{n.Unreadable, "did not show %d writes of %s: that memory, or a value in a condition, could not be read"},
	})
}

// openOf returns a sentence for each fate of the beginnings of a span that have made
// no event.
func openOf(name string, n compiler.Counters) []string {
	return sentences(name, []fate{
		{n.NoRoom, "missed %d beginnings of spans at %s: too many were open at once"},
		{n.Unreadable, "did not show %d calls of %s: a value in a condition could not be read"},
		{n.Replaced, "%d spans that began at %s have no end: another one began with the same key"},
		{n.Open, "%d spans that began at %s had not ended when the trace ended"},
	})
}

// fate is a number of calls, and the sentence on what has become of them.
type fate struct {
	n    uint64
	text string
}

// sentences returns the sentences about the calls of a function, except for those
// about none.
func sentences(name string, fates []fate) (lines []string) {
	for _, f := range fates {
		text := f.text
		if f.n == 1 {
			text = singular.Replace(text)
		}
		if f.n > 0 {
			lines = append(lines, fmt.Sprintf(text, f.n, name))
		}
	}
	return lines
}

var singular = strings.NewReplacer("events of", "event of", "calls of", "call of", "objects of", "object of", "writes of", "write of", "beginnings of spans", "beginning of a span",
	"spans that", "span that", "have no end", "has no end")
