package compiler

import (
	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// Aggregate is a number, or a histogram, of the calls that have a key in common.
type Aggregate struct {
	Kind  AggregateKind
	Name  string // as in the spec: hist($duration)
	Value *Value // nil for [Count]
	// Low, High and Step are the bounds of a [Linear] histogram, as 64-bit
	// numbers with the sign of the value. Bucket i, counted from 1, begins at
	// Low+(i-1)*Step, and the last one ends before High.
	Low, High, Step uint64
}

// AggregateKind selects the statistic that an aggregate computes.
type AggregateKind uint8

// The kinds of aggregates.
const (
	Count  AggregateKind = iota // number of calls
	Sum                         // sum of the values
	Avg                         // sum of the values and number of calls
	Min                         // the least value
	Max                         // the greatest value
	Hist                        // a histogram with a bucket for each power of two
	Linear                      // a histogram with buckets of equal width
)

// AggregateNames has the names of the kinds in the spec language.
var AggregateNames = [...]string{"count", "sum", "avg", "min", "max", "hist", "lhist"}

// String returns the name of the kind in the spec language.
func (k AggregateKind) String() string { return AggregateNames[k] }

// Unit returns the unit of the values: "ns" for durations, or "".
func (a *Aggregate) Unit() string {
	if a.Value != nil && a.Value.Base.Builtin == Duration {
		return "ns"
	}
	return ""
}

// DefaultKeys is the number of keys of a table by default.
const DefaultKeys = 10_240

const (
	// MostKeyPart is the largest number of bytes of a value in a key. A string has
	// [StringSlack] bytes more.
	MostKeyPart = 64
	// MostKey is the largest number of bytes of a key.
	MostKey = 200
)

// KeyRoom returns the number of bytes that a value takes in a key, a multiple of 8.
func KeyRoom(v *Value) int {
	switch {
	case v.Base.Builtin == KernelStack: // its number, and the caller
		return 16
	case v.Text != NoText:
		return Align8(MostKeyPart + StringSlack)
	case v.Scalar != nil:
		return 8
	}
	size, _ := btf.Sizeof(v.Type) // sizes of bound values are known
	if v.Base.Builtin == NoBuiltin && v.IsText() {
		size++ // a NUL
	}
	return Align8(size)
}

// Signed reports whether the values have a sign.
func (a *Aggregate) Signed() bool { return a.Value != nil && a.Value.Scalar.Signed }

// Less reports whether x < y, as values.
func (a *Aggregate) Less(x, y uint64) bool {
	if a.Signed() {
		return int64(x) < int64(y)
	}
	return x < y
}

// Steps returns the number of buckets between the bounds of a [Linear] histogram.
func (a *Aggregate) Steps() uint64 { return (a.High-a.Low-1)/a.Step + 1 }

// Buckets returns the number of buckets of a histogram. A [Linear] one begins with
// the values below the lower bound, and ends with those from the upper bound on. A
// [Hist] has a bucket for each number of bits that a value from 0 on can have, from
// 0 to 64, then the same for the negative values without their sign, but for 0.
func (a *Aggregate) Buckets() int {
	switch {
	case a.Kind == Linear:
		return int(a.Steps()) + 2
	case a.Kind == Hist && a.Signed():
		return 65 + 64
	case a.Kind == Hist:
		return 65
	}
	return 0
}

// TableLayout describes where the parts of a table are: the contract between the
// generated code and the reader. A table is a hash map, or an array of one element
// if there is no key; with [Options].ClearTables it is two of them.
type TableLayout struct {
	Maps   []string    // names in Unit.Collection; of two, [ControlTurn] has the index of the one that counts
	Asked  *spec.Trace // the spec
	Events []int       // numbers of the events that are counted in it
	Slots  int         // CPUs that have extremes of their own, a power of two; 0 if all share them

	KeySize  int
	Function int   // offset in the key of the number of the event, or -1
	Key      []int // offsets in the key of its parts

	// An element has the number of calls at offset 0, then the rest.
	Size   int
	Cells  []int // offsets of the aggregates; 0 for those that need no more than the calls
	Stacks []int // offsets of the stacks of the key, by part; 0 for other parts
}

// Edges returns the lowest and the highest value of a bucket of a histogram, as
// 64-bit numbers with the sign of the values.
func (a *Aggregate) Edges(bucket int) (low, high uint64) {
	switch {
	case a.Kind == Hist && bucket == 64+64:
		return 1 << 63, 1 << 63
	case a.Kind == Hist && bucket > 64:
		low, high = powers(bucket - 64)
		return -high, -low
	case a.Kind == Hist:
		return powers(bucket)
	}
	lo, hi := uint64(0), uint64(1)<<(a.Value.Scalar.Width()-1)<<1-1
	if a.Signed() {
		lo, hi = -(hi>>1 + 1), hi>>1
	}
	switch steps := a.Steps(); {
	case bucket == 0:
		return lo, a.Low - 1
	case uint64(bucket) > steps:
		return a.High, hi
	case uint64(bucket) == steps:
		return a.Low + (steps-1)*a.Step, a.High - 1
	}
	low = a.Low + uint64(bucket-1)*a.Step
	return low, low + a.Step - 1
}

// powers returns the lowest and the highest number that has this number of bits.
func powers(bits int) (low, high uint64) {
	if bits == 0 {
		return 0, 0
	}
	low = 1 << (bits - 1)
	return low, low<<1 - 1
}
