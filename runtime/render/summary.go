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

// ProbeSummary holds what was counted for one event type.
type ProbeSummary struct {
	ProbeName
	Counts
}

// Loss reports that a probe has lost something since the last report, with all
// counts so far, or what functions that share programs have missed so far.
type Loss struct {
	Time time.Duration // CLOCK_MONOTONIC
	ProbeSummary
	Shared []SharedMissed // in place of a ProbeSummary, or nil
}

// Summary holds the counts of a run.
type Summary struct {
	Probes  []ProbeSummary // one for each event type
	Shared  []SharedMissed
	Objects uint64 // that were followed, also those of which all events were lost
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
	s := Summary{Objects: a.Objects}
	attached := AttachKinds(unit)
	for _, n := range a.Events {
		s.Probes = append(s.Probes, ProbeSummary{newProbeName(n.EventType, attached[n.Probe]), newCounts(unit, n)})
	}
	once := runtime.MissedOnce(a.Missed)
	for i, m := range a.Missed {
		s.addMissed(a.Events, m, once[i].N)
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

// addMissed adds what was missed by one program to the events that it writes. once is
// what it adds to those that another program writes, too, see [runtime.MissedOnce].
func (s *Summary) addMissed(events []runtime.Counts, m runtime.Missed, once uint64) {
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
			p := &s.Probes[i]
			switch {
			case n.Probe != m.Probes[0] || !p.attachedBy(m.Kind):
			case p.Attach == string(m.Kind):
				p.Missed = sum(p.Missed, m.N)
			default:
				p.Missed = sum(p.Missed, once)
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

// ProbeName identifies an event type.
type ProbeName struct {
	Func   string
	Module string // "" for vmlinux
	Kind   string // entry, return, call, begin, span, row or write
	Attach string // attach kinds, entry first, joined by +
	// Group and Event are set for a kprobe_events line.
	Group, Event string
}

// newProbeName names an event type. attached are the attach kinds of its probe, of which
// it takes those of the programs that write its records.
func newProbeName(ev *compiler.EventType, attached []string) ProbeName {
	switch last := len(attached) - 1; {
	case last < 1:
	case ev.Kind == compiler.EntryEvent:
		attached = attached[:1]
	case ev.Kind == compiler.ReturnEvent && !ev.Probe.Stash && ev.Probe.Chain == nil:
		attached = attached[last:]
	}
	fn := ev.Probe.Func
	name := ProbeName{Func: FunctionName(fn), Module: fn.Module, Kind: ev.Kind.String(), Attach: strings.Join(attached, "+")}
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

// Text returns a table with a row for each event type, at most width columns
// wide. A count that is not kept is "-".
func (s Summary) Text(width int) string {
	head := []string{"FUNCTION", "KIND", "ATTACH", "HITS", "FILTERED", "MATCHED", "DELIVERED", "LOST", "MISSED", "NO ROOM", "UNREADABLE", "UNPAIRED"}
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
	text.WriteString(t.Fold(width))
	for _, m := range s.Shared {
		fmt.Fprintf(&text, "  %s\n", &m)
	}
	return text.String()
}
