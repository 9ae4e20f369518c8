package compiler

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// Names of the maps of measures.
const (
	// FirstMap has for the number of a measured event what is kept of the
	// first call that matched, see [FirstCall].
	FirstMap = "first"
	// ValuesMap is a per-CPU array of [Samples], each followed by the
	// histograms of the values from 0 on and, if one of the probes needs it,
	// of the negative values without their sign. Durations are values, too.
	ValuesMap = "values"
	// ChangesMap is a per-CPU array of [ChangeCounts].
	ChangesMap = "changes"
)

// FirstCall is what is kept of the first call that matched.
type FirstCall struct {
	Time  uint64 // CLOCK_MONOTONIC in ns, when it was counted
	Value uint64 // of [Probe].First
	Read  uint64 // 1 if there is a value and it could be read
}

// Samples is what is kept on a CPU of values besides their histograms.
type Samples struct {
	// Low and High are the sums of the lower and of the upper halves of the
	// values, of which the upper one has the sign.
	Low, High uint64
	Unread    uint64 // matching calls whose value could not be read
	Extremes  [nesting]Extremes
}

// Extremes are the greatest value, and the complement of the least, which is a
// greatest one, too. Of signed values the sign bit is reversed, so that 0, with
// which they begin, is less than all others.
type Extremes struct {
	Busy           uint64 // a program is about to change them
	Most, NotLeast uint64
}

// ChangeCounts is what is counted on a CPU of matching calls. A call counts as
// unread if the item could not be read at entry or at return.
type ChangeCounts struct{ Changed, Unchanged, Unread uint64 }

// nesting is how many programs can be at work on a CPU at once: of a task, of a
// softirq, of an interrupt and of an NMI. See [program.extremes].
const nesting = 4

// Offsets and sizes of these.
const (
	firstTime, firstValue, firstRead = 0, 8, 16
	firstSize                        = 24

	samplesLow, samplesHigh = 0, 8
	samplesUnread           = 16
	samplesExtremes         = 24
	extremesBusy            = 0
	extremesMost            = 8
	extremesNotLeast        = 16
	extremesSize            = 24
	samplesSize             = samplesExtremes + nesting*extremesSize
	histogramSize           = 8 * HistogramBuckets

	changesChanged, changesUnchanged, changesUnread = 0, 8, 16
	changesSize                                     = 24
)

// Signed says whether the measured values of a probe have a sign.
func (p *Probe) Signed() bool { return p.Measure == Values && p.Measured.Scalar.Signed }

// measures says whether one of the probes is measured.
func measures(probes []*Probe) bool {
	for _, p := range probes {
		if p.Measure != NoMeasure {
			return true
		}
	}
	return false
}

// mostHistograms bounds the memory that histograms take on each CPU, to 32 or
// 64 MiB.
const mostHistograms = 4096

// addMeasures makes the maps of measures and numbers the elements of probes.
func (u *Unit) addMeasures(probes []*Probe) error {
	var values, changes, size uint32
	for _, p := range probes {
		switch p.Measure {
		case Values, Durations:
			u.elements[p] = int(values)
			values++
			size = max(size, samplesSize+histogramSize)
			if p.Signed() {
				size = samplesSize + 2*histogramSize
			}
		case Changes:
			u.elements[p] = int(changes)
			changes++
		}
	}
	perCPU := func(name string, size, n uint32) {
		if n > 0 {
			u.Collection.Maps[name] = &ebpf.MapSpec{Name: name, Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: size, MaxEntries: n}
		}
	}
	if values > mostHistograms {
		return fmt.Errorf("%d functions would have a histogram each, and %d is the limit: name fewer", values, mostHistograms)
	}
	perCPU(ValuesMap, size, values)
	perCPU(ChangesMap, changesSize, changes)
	return nil
}

// addFirst makes the map of the first calls.
func (u *Unit) addFirst(probes []*Probe) {
	if measures(probes) {
		u.Collection.Maps[FirstMap] = &ebpf.MapSpec{
			Name: FirstMap, Type: ebpf.Hash, KeySize: 4, ValueSize: firstSize, MaxEntries: uint32(len(u.Events)),
		}
	}
}

// Element is the index of a probe in [ValuesMap] or [ChangesMap].
func (u *Unit) Element(p *Probe) int { return u.elements[p] }
