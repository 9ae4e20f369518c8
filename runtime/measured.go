package runtime

import (
	"time"

	"github.com/ksnoop/ksnoop/compiler"
)

// Measured is what was counted of the calls of a measured event, over all CPUs.
// Once the session is stopped it is exact and does not change any more.
type Measured struct {
	*compiler.Event // its Probe.Measure says which of the fields are meant
	compiler.Counters
	First *First // nil: no call has matched

	// Of durations, in ns, and of values:

	Histogram *compiler.Histogram // those from 0 on
	Negative  *compiler.Histogram // the others without their sign; nil if there cannot be any
	Sum       Int
	Min, Max  *Int // nil without samples

	// Of values, and of changes at entry or at return:

	Unread uint64 // matching calls whose item could not be read

	// Of changes:

	Changed, Unchanged uint64
}

// First is the first call that matched, by the order in which they were
// counted.
type First struct {
	Time  time.Duration // CLOCK_MONOTONIC, when it was counted
	Value uint64        // of the event's Probe.First, extended to 64 bits by the sign of its type
	Read  bool          // there is such a value, and it could be read
}

// Called is how many calls there were, whether they matched or not.
func (m *Measured) Called() uint64 { return m.Filtered + m.Matched }

// Samples is how many values are in the histograms: those of the matching calls
// that are not Unread.
func (m *Measured) Samples() uint64 {
	n := uint64(0)
	for _, h := range []*compiler.Histogram{m.Histogram, m.Negative} {
		if h != nil {
			n += h.Samples()
		}
	}
	return n
}

// Merge adds what was counted of another event with the same measure, such as
// that of another function of a glob.
func (m *Measured) Merge(o *Measured) {
	if o.First != nil && (m.First == nil || o.First.Time < m.First.Time) {
		m.First = o.First
	}
	m.Counters.Add(o.Counters)
	m.Unread += o.Unread
	m.Changed += o.Changed
	m.Unchanged += o.Unchanged
	m.Histogram = merged(m.Histogram, o.Histogram)
	m.Negative = merged(m.Negative, o.Negative)
	m.Sum = m.Sum.Add(o.Sum)
	m.widen(o.Min, o.Max)
}

// merged is both histograms in one; nil is one that is not there.
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

// widen makes the extremes hold for values with other ones, too.
func (m *Measured) widen(least, most *Int) {
	if least != nil && (m.Min == nil || least.Cmp(*m.Min) < 0) {
		m.Min = least
	}
	if most != nil && (m.Max == nil || most.Cmp(*m.Max) > 0) {
		m.Max = most
	}
}
