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

// Measured reads what has been counted so far of each measured event, in the
// order of the unit's events.
func (s *Session) Measured() ([]Measured, error) {
	tallies, err := s.Tallies()
	if err != nil {
		return nil, err
	}
	var all []Measured
	for _, t := range tallies {
		if t.Probe.Measure == compiler.NoMeasure {
			continue
		}
		m := Measured{Event: t.Event, Counters: t.Counters}
		if err := s.readMeasure(&m); err != nil {
			return nil, fmt.Errorf("read the %s of %s: %w", t.Probe.Measure, t.Probe.Func.Name, err)
		}
		all = append(all, m)
	}
	return all, nil
}

// readMeasure reads what the maps have besides the counters.
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

// eachCPU reads a probe's element of a map, one CPU after the other.
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
	m.Sum = m.Sum.Add(m.number(s.High).shifted()).Add(NewUint(s.Low))
	m.Unread += s.Unread
	for _, e := range s.Extremes {
		if e.Most != 0 || e.NotLeast != 0 { // one of them is, once there is a value
			least, most := m.extreme(^e.NotLeast), m.extreme(e.Most)
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
	m.Unread += c.Unread
	return err
}

// number is a value with its sign.
func (m *Measured) number(v uint64) Int {
	if m.Probe.Signed() {
		return NewInt(int64(v))
	}
	return NewUint(v)
}

// extreme is a value as [compiler.Extremes] have it.
func (m *Measured) extreme(v uint64) Int {
	if m.Probe.Signed() {
		v ^= 1 << 63
	}
	return m.number(v)
}

func readNative(r io.Reader, parts ...any) error {
	for _, part := range parts {
		if err := binary.Read(r, binary.NativeEndian, part); err != nil {
			return err
		}
	}
	return nil
}
