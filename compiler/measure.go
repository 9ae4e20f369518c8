package compiler

// Measure selects the statistics of matching calls that a probe's programs
// aggregate instead of writing records. The result is in maps of the programs, one
// part for each CPU, and is complete even if the ring buffer overflows. A measured
// probe has one [EventType], for which no record is written. Its calls are counted as with
// [Options].CountCalls, except for those of processes that are not traced, which are
// not counted at all.
//
// A call is counted when its fate is known: at return, if the spec or the
// measure needs the return. In that case a call that began before the probe was
// attached is not counted. A call that is under way when the session is stopped
// is counted only if a condition at entry has rejected it.
type Measure uint8

// The measures. Each of them stores the number of calls, see [Counters], and all
// but tables store the value of the first call.
const (
	NoMeasure Measure = iota // every matching call is an event
	Calls                    // nothing but the number of calls
	Durations                // how long the calls took
	Values                   // the numeric values of an item
	Changes                  // whether the calls changed an item
	Tables                   // aggregates of the calls by key
)

// String returns the name of the measure, such as "durations".
func (m Measure) String() string {
	return [...]string{"events", "calls", "durations", "values", "changes", "aggregates"}[m]
}

// MostCompared is the largest number of bytes of an item that are compared.
const MostCompared = 256

// Names of the maps of measures.
const (
	// FirstMap has, by the number of a measured event, a [FirstCall] for the
	// first matching call.
	FirstMap = "first"
	// ValuesMap is a per-CPU array of [Samples]. Each is followed by the
	// histogram of the values from 0 on and, if one of the probes needs it, the
	// histogram of the negative values without their sign. Durations are
	// values, too.
	ValuesMap = "values"
	// ChangesMap is a per-CPU array of [ChangeCounts].
	ChangesMap = "changes"
)

// FirstCall describes the first matching call.
type FirstCall struct {
	Time  uint64 // CLOCK_MONOTONIC in ns, when it was counted
	Value uint64 // the value of [Probe].First
	Read  uint64 // 1 if there is a value and it could be read
}

// Samples holds a CPU's sums and extremes of values, besides their histograms.
type Samples struct {
	// Low and High are the sums of the lower and of the upper halves of the
	// values. Both halves of signed values have a sign.
	Low, High uint64
	Faulted   uint64 // matching calls whose value could not be read
	Extremes  [Nesting]Extremes
}

// Extremes holds the greatest value and the complement of the least, which is
// the greatest of the complements. The sign bit of signed values is inverted,
// so that 0, the initial value, is less than all others.
type Extremes struct {
	Busy           uint64 // a program is about to change them
	Most, NotLeast uint64
}

// ChangeCounts holds a CPU's counts of matching calls. A call counts as
// faulted if the item could not be read at entry or at return.
type ChangeCounts struct{ Changed, Unchanged, Faulted uint64 }

// Nesting is the number of programs that can be active on a CPU at once: one
// each of a task, a softirq, an interrupt and an NMI. See package codegen.
const Nesting = 4

// Offsets and sizes of the structures above.
const (
	FirstTime, FirstValue, FirstRead = 0, 8, 16
	FirstSize                        = 24

	SamplesLow, SamplesHigh = 0, 8
	SamplesFaulted          = 16
	SamplesExtremes         = 24
	ExtremesBusy            = 0
	ExtremesMost            = 8
	ExtremesNotLeast        = 16
	ExtremesSize            = 24
	SamplesSize             = SamplesExtremes + Nesting*ExtremesSize
	HistogramSize           = 8 * HistogramBuckets

	ChangesChanged, ChangesUnchanged, ChangesFaulted = 0, 8, 16
	ChangesSize                                      = 24
)

// Signed reports whether the measured values of a probe have a sign.
func (p *Probe) Signed() bool { return p.Measure == Values && p.Measured.Scalar.Signed }

// Element returns the index of a probe in [ValuesMap] or [ChangesMap].
func (u *Unit) Element(p *Probe) int { return u.Elements[p] }
