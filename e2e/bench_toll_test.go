//go:build linux

package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// pages is the size of the ring buffer for each CPU. It has room for the events
// of a flood. A much larger one would have pages that the second flood is the
// first to touch.
const pages = 512

func ours(c *benchCase, args ...string) invocation {
	args = append([]string{"trace", "--pages", fmt.Sprint(pages)}, args...)
	return invocation{path: "/bin/ksnoop", args: append(args, c.ours...), tells: true, marker: eventsOf(c.functions)}
}

func bccs(c *benchCase) invocation {
	return invocation{path: bccPath, args: append([]string{"-P", fmt.Sprint(pages)}, c.bcc...), marker: eventsOf(c.functions)}
}

func bpftrace(functions []string, args ...string) invocation {
	return invocation{path: bpftracePath, args: args, marker: eventsOf(functions),
		env: []string{fmt.Sprintf("BPFTRACE_PERF_RB_PAGES=%d", pages), "BPFTRACE_STRLEN=200"}}
}

// eventsOf returns a pattern that matches once in each event of functions, in
// the output of any tracer.
func eventsOf(functions []string) *regexp.Regexp {
	return regexp.MustCompile(`\b(` + strings.Join(functions, "|") + `)[( ]`)
}

// A toll holds the costs of a tracer, in instructions.
type toll struct {
	kernel float64 // added to a call
	user   float64 // for each event, by the tracer's process
	paced  float64 // the same when each event wakes the tracer
}

// pacedCalls is the number of calls that are made one every pace, so that each
// event is printed before the next call.
const (
	pacedCalls = 50
	pace       = 5 * time.Millisecond
)

// toll measures a tracer: what it adds to calls while its process is stopped,
// and then what it does with their events. It requires that all events are
// shown, because a tracer that loses events saves the work.
func (b *benchmark) toll(t *testing.T, i invocation, c *benchCase) (cost toll, err error) {
	m := b.meter(c, c.events > 0)
	i.piped = true
	s := i.start(t)
	if err := s.attached(); err != nil {
		return toll{}, err
	}
	flood := m.loops * m.calls * c.events
	for range 2 { // the first round touches memory for the first time, and makes ksnoop read symbols
		s.rest()
		s.pause()
		before := s.instructions()
		spin()
		cost.kernel = m.undisturbed() - m.nothing
		s.resume()
		cost.user = float64(s.instructions()-before) / float64(max(flood, 1))
	}
	want := 2 * flood
	if c.events > 0 {
		cost.paced = b.paced(s, c)
		want += pacedCalls * c.events
	}
	events, err := s.end()
	if err == nil && (events < want || events > want && !c.unfiltered) {
		err = fmt.Errorf("%s prints %d events of %d", i.path, events, want)
	}
	return cost, err
}

func (b *benchmark) paced(s *subject, c *benchCase) float64 {
	before := s.instructions()
	for range pacedCalls {
		b.calls[c.call]()
		nap(pace)
	}
	return float64(s.instructions()-before) / float64(pacedCalls*c.events)
}

// tryBCC finds out whether bcc's ksnoop shows anything: 0.26 does not where
// functions begin with endbr64.
func (b *benchmark) tryBCC(t *testing.T) {
	if _, err := os.Stat(bccPath); err != nil {
		b.noBCC = err.Error()
	} else if _, err := b.toll(t, bccs(&scalarCase), &scalarCase); err != nil {
		b.noBCC = err.Error()
	}
	if b.noBCC != "" {
		t.Log("bcc:", b.noBCC)
	}
}

// meter returns a meter for the calls of a case. few makes it use fewer calls,
// so that there is room for their events.
func (b *benchmark) meter(c *benchCase, few bool) *meter {
	m := &meter{call: b.calls[c.call], loops: 201, calls: 100, alone: true}
	if few {
		m.loops, m.calls = 11, 20
	}
	spin()
	m.nothing = m.undisturbed() // in loops of the same length, because reading the clock takes a share of each call
	return m
}

// spin waits until the Go runtime's own thread checks this process less often.
// It does so every 20 microseconds after each sleep, then ever less.
func spin() {
	for end := instructions() + 25*time.Millisecond.Nanoseconds(); instructions() < end; {
	}
}
