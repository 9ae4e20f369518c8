package runtime

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cilium/ebpf"

	"github.com/ksnoop/ksnoop/compiler"
)

// Measured returns what has been counted of each measured event, in the order of
// the unit's events; of aggregates, the counters alone: see [Session.Tables]. Call it
// after [Session.Stop]: unlike [Session.EventCounts] it reads maps by bpf(2), and
// kprobes can miss calls meanwhile.
func (s *Session) Measured() ([]Measured, error) {
	counts, err := s.EventCounts()
	if err != nil {
		return nil, err
	}
	var all []Measured
	unbegun := map[*compiler.Span]uint64{} // spans that found no room to begin
	for _, t := range counts {
		if t.Kind == compiler.BeginEvent {
			unbegun[t.Probe.Span] = t.NoRoom
		}
		if t.Probe.Measure == compiler.NoMeasure {
			continue
		}
		m := Measured{EventType: t.EventType, Counters: t.Counters}
		if t.Kind == compiler.SpanEvent {
			m.NoRoom += unbegun[t.Probe.Span]
		}
		if t.Probe.Measure == compiler.Tables {
			all = append(all, m)
			continue
		}
		if err := s.readMeasure(&m); err != nil {
			return nil, fmt.Errorf("read the %s of %s: %w", t.Probe.Measure, t.Probe.Func.Name, err)
		}
		all = append(all, m)
	}
	return all, nil
}

// readMeasure reads what the maps other than the counters hold.
func (s *Session) readMeasure(m *Measured) error {
	var first compiler.FirstCall
	switch err := s.coll.Maps[compiler.FirstMap].Lookup(uint32(m.Number), &first); {
	case err == nil:
		m.First = &First{Time: time.Duration(first.Time), Value: first.Value, Read: first.Read != 0}
	case !errors.Is(err, ebpf.ErrKeyNotExist):
		return err
	}
	switch m.Probe.Measure {
	case compiler.Durations, compiler.Values:
		m.Histogram = new(compiler.Histogram)
		if m.Probe.Signed() {
			m.Negative = new(compiler.Histogram)
		}
		return s.eachCPU(compiler.ValuesMap, m.Probe, m.addSamples)
	case compiler.Changes:
		return s.eachCPU(compiler.ChangesMap, m.Probe, m.addChanges)
	}
	return nil
}

// eachCPU calls add with a probe's element of a map for one CPU after the other.
func (s *Session) eachCPU(name string, p *compiler.Probe, add func(io.Reader) error) error {
	all, err := s.coll.Maps[name].LookupBytes(uint32(s.unit.Element(p)))
	if err != nil {
		return err
	}
	size := int(s.coll.Maps[name].ValueSize()) // a multiple of 8
	for at := 0; at+size <= len(all); at += size {
		if err := add(bytes.NewReader(all[at:][:size])); err != nil {
			return err
		}
	}
	return nil
}

func (m *Measured) addSamples(r io.Reader) error {
	var s compiler.Samples
	var histogram compiler.Histogram
	if err := readNative(r, &s, &histogram); err != nil {
		return err
	}
	m.Histogram.Merge(&histogram)
	if m.Negative != nil {
		if err := readNative(r, &histogram); err != nil {
			return err
		}
		m.Negative.Merge(&histogram)
	}
	m.Sum = m.Sum.Add(number(s.High, m.Probe.Signed()).shifted()).Add(number(s.Low, m.Probe.Signed()))
	m.Faulted += s.Faulted
	for _, e := range s.Extremes {
		if e.Most != 0 || e.NotLeast != 0 { // one of them is nonzero once there is a value
			least, most := extreme(^e.NotLeast, m.Probe.Signed()), extreme(e.Most, m.Probe.Signed())
			m.widen(&least, &most)
		}
	}
	return nil
}

func (m *Measured) addChanges(r io.Reader) error {
	var c compiler.ChangeCounts
	err := readNative(r, &c)
	m.Changed += c.Changed
	m.Unchanged += c.Unchanged
	m.Faulted += c.Faulted
	return err
}

// number returns v, extended by its sign if it is signed.
func number(v uint64, signed bool) Int {
	if signed {
		return NewInt(int64(v))
	}
	return NewUint(v)
}

// extreme returns a value that is stored as in [compiler.Extremes].
func extreme(v uint64, signed bool) Int {
	if signed {
		v ^= 1 << 63
	}
	return number(v, signed)
}

func readNative(r io.Reader, parts ...any) error {
	for _, part := range parts {
		if err := binary.Read(r, binary.NativeEndian, part); err != nil {
			return err
		}
	}
	return nil
}

// Measured holds what was counted of the calls of a measured event, over all
// CPUs. Once the session is stopped it is exact and does not change any more.
type Measured struct {
	*compiler.EventType // its Probe.Measure tells which of the fields are set
	compiler.Counters
	First *First // nil if no call has matched

	// Of durations, in ns, and of values:

	Histogram *compiler.Histogram // of the samples from 0 on
	Negative  *compiler.Histogram // of the absolute values of negative samples; nil if there cannot be any
	Sum       Int
	Min, Max  *Int // nil without samples

	// Of values, and of changes at entry or at return:

	Faulted uint64 // matching calls whose item could not be read

	// Of changes:

	Changed, Unchanged uint64
}

// First describes the first call that matched, in the order in which calls were
// counted.
type First struct {
	Time  time.Duration // CLOCK_MONOTONIC, when it was counted
	Value uint64        // of the event's Probe.First, extended to 64 bits by the sign of its type
	Read  bool          // there is a value, and it could be read
}

// Called returns the number of calls, whether they matched or not.
func (m *Measured) Called() uint64 { return m.Filtered + m.Matched }

// Samples returns the number of values in the histograms: one for each matching
// call that is not Faulted.
func (m *Measured) Samples() uint64 { return m.Histogram.Samples() + m.Negative.Samples() }

// Merge adds what was counted of another event with the same measure, such as
// that of another function of a glob.
func (m *Measured) Merge(o *Measured) {
	if o.First != nil && (m.First == nil || o.First.Time < m.First.Time) {
		m.First = o.First
	}
	m.Counters.Add(o.Counters)
	m.Faulted += o.Faulted
	m.Changed += o.Changed
	m.Unchanged += o.Unchanged
	m.Histogram = merged(m.Histogram, o.Histogram)
	m.Negative = merged(m.Negative, o.Negative)
	m.Sum = m.Sum.Add(o.Sum)
	m.widen(o.Min, o.Max)
}

// merged returns the sum of two histograms, either of which may be nil.
func merged(a, b *compiler.Histogram) *compiler.Histogram {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	sum := *a
	sum.Merge(b)
	return &sum
}

// widen extends the extremes to include least and most.
func (m *Measured) widen(least, most *Int) {
	if least != nil && (m.Min == nil || least.Cmp(*m.Min) < 0) {
		m.Min = least
	}
	if most != nil && (m.Max == nil || most.Cmp(*m.Max) > 0) {
		m.Max = most
	}
}
