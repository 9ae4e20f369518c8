package runtime

import (
	"time"

	"github.com/ksnoop/ksnoop/compiler"
)

// Table is what was counted of the calls of a spec with aggregates: a row for each
// key. All numbers of a row are of the same calls.
type Table struct {
	Label string // function, tracepoint or glob, as in the spec; both points of a span
	// ByFunction is set if the spec is a glob: the function is the first part of
	// the key.
	ByFunction bool
	Key        []*compiler.Value     // the other parts of the key, in the order of the spec
	Aggregates []*compiler.Aggregate // in the order of the spec
	// Since and Time are when counting of these rows began, and when they were
	// read, by CLOCK_MONOTONIC.
	Since, Time time.Duration
	Rows        []Row
	// Full counts the matching calls that are in no row because there was no
	// room for their key.
	Full uint64
	// Unread counts the matching calls that are in no row because a value of
	// the key, or of an aggregate, could not be read.
	Unread uint64
}

// Row is what was counted of the calls with one key.
type Row struct {
	Func  string  // name of the function, if the table is ByFunction
	Key   []Value // a value for each of Table.Key
	Calls uint64  // number of calls; never 0
	Cells []Cell  // one for each of Table.Aggregates
}

// Cell is one aggregate of a row. Its kind says which fields are set.
type Cell struct {
	Number  Int      // of count, sum, min and max; the sum of avg, see Row.Calls
	Buckets []Bucket // of histograms, from the first to the last that is not empty
}

// Bucket counts the values of a histogram from From to To, inclusive.
type Bucket struct {
	From, To Int
	Count    uint64
}

// Mean returns the average of the values of a row: the sum divided by the number
// of calls.
func (r *Row) Mean(sum Int) float64 { return sum.Float64() / float64(r.Calls) }
