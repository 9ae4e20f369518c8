package main

import (
	"strconv"
	"time"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// counts is what became of the calls of a function, from the start of the run
// on. nil: nobody counts it.
type counts struct {
	Hits, Filtered, Matched, Delivered, Lost *uint64

	NoRoom, Missed, Unreadable, Unpaired, Unread *uint64
}

// probeSummary is what was counted for one kind of event.
type probeSummary struct {
	probeName
	counts
}

// loss says that a probe has lost something since the last time, with all that
// was counted so far.
type loss struct {
	Time time.Duration // CLOCK_MONOTONIC, as of events
	probeSummary
}

// summary is what was counted in a run.
type summary struct {
	Probes []probeSummary // one for each kind of event
	Shared []sharedMisses
}

// sharedMisses is calls that the kernel skipped of functions that share a
// program: only the sum is known.
type sharedMisses struct {
	Attach string
	Funcs  []string
	Missed uint64
}

// account is what a session has counted so far.
type account struct {
	tallies []runtime.Tally // one for each event of the unit
	missed  []runtime.Misses
	// unfollowed is how many processes of a tree are not traced.
	unfollowed uint64
}

func readAccount(session *runtime.Session) (a account, err error) {
	if a.tallies, err = session.Tallies(); err != nil {
		return a, err
	}
	if a.missed, err = session.Missed(); err != nil {
		return a, err
	}
	a.unfollowed, err = session.Unfollowed()
	return a, err
}

// newSummary is the account of a unit's session.
func newSummary(unit *compiler.Unit, a account) summary {
	var s summary
	attached := attachKinds(unit)
	for _, n := range a.tallies {
		s.Probes = append(s.Probes, probeSummary{newProbeName(n.Event, attached[n.Probe]), newCounts(unit, n)})
	}
	for _, m := range a.missed {
		s.addMisses(unit, m)
	}
	return s
}

func newCounts(unit *compiler.Unit, n runtime.Tally) counts {
	c := counts{Delivered: &n.Delivered, Lost: &n.Lost, NoRoom: &n.NoRoom, Unreadable: &n.Unreadable, Unpaired: &n.Unpaired}
	if unit.Collection.Maps[compiler.SwitchMap] != nil {
		hits := n.Filtered + n.Matched
		c.Hits, c.Filtered, c.Matched = &hits, &n.Filtered, &n.Matched
	}
	if n.Unread > 0 {
		c.Unread = &n.Unread
	}
	return c
}

// addMisses adds what one program missed to the events that it makes.
func (s *summary) addMisses(unit *compiler.Unit, m runtime.Misses) {
	switch {
	case m.Uncounted && m.N == 0:
	case len(m.Probes) > 1:
		shared := sharedMisses{Attach: string(m.Kind), Missed: m.N}
		for _, p := range m.Probes {
			shared.Funcs = append(shared.Funcs, functionName(p.Func))
		}
		s.Shared = append(s.Shared, shared)
	default:
		for i, ev := range unit.Events {
			if p := &s.Probes[i]; ev.Probe == m.Probes[0] && p.attachedBy(m.Kind) {
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

func (p *jsonPrinter) loss(l loss) {
	p.text = strconv.AppendInt(append(p.text, `{"type":"loss","time":`...), l.Time.Nanoseconds(), 10)
	p.probe(l.probeName)
	p.counts(l.counts)
	p.text = append(p.text, "}\n"...)
}

func (p *jsonPrinter) end(s summary) {
	p.text = append(p.text, `{"type":"summary","probes":[`...)
	for i, probe := range s.Probes {
		p.comma(i)
		p.text = append(p.text, '{')
		p.probe(probe.probeName)
		p.counts(probe.counts)
		p.text = append(p.text, '}')
	}
	p.text = append(p.text, ']')
	if len(s.Shared) > 0 {
		p.shared(s.Shared)
	}
	p.text = append(p.text, "}\n"...)
}

// counts prints what is counted.
func (p *jsonPrinter) counts(c counts) {
	for _, count := range []struct {
		name string
		n    *uint64
	}{
		{"hits", c.Hits}, {"filtered", c.Filtered}, {"matched", c.Matched}, {"delivered", c.Delivered}, {"lost", c.Lost},
		{"noroom", c.NoRoom}, {"missed", c.Missed}, {"unreadable", c.Unreadable}, {"unpaired", c.Unpaired}, {"unread", c.Unread},
	} {
		if count.n != nil {
			p.key(`"` + count.name + `"`)
			p.text = strconv.AppendUint(p.text, *count.n, 10)
		}
	}
}

func (p *jsonPrinter) shared(all []sharedMisses) {
	p.text = append(p.text, `,"shared":[`...)
	for i, s := range all {
		p.comma(i)
		p.text = append(p.text, '{')
		p.member("attach", s.Attach)
		p.text = append(p.text, `,"funcs":[`...)
		for j, name := range s.Funcs {
			p.comma(j)
			p.text = quoteJSON(p.text, name)
		}
		p.text = append(p.text, `],"missed":`...)
		p.text = append(strconv.AppendUint(p.text, s.Missed, 10), '}')
	}
	p.text = append(p.text, ']')
}
