package runtime

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ksnoop/ksnoop/compiler"
)

// Table holds the counts of the calls of a spec with aggregates: a row for each
// key. Once the session is stopped, all numbers of a row are of the same calls.
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
	// Faulted counts the matching calls that are in no row because a value of
	// the key, or of an aggregate, could not be read.
	Faulted uint64
}

// Row holds the counts of the calls with one key.
type Row struct {
	Func  string  // name of the function, if the table is ByFunction
	Key   []Value // a value for each of Table.Key
	Calls uint64  // number of calls; never 0
	Cells []Cell  // one for each of Table.Aggregates
}

// Cell is one aggregate of a row. The kind of the aggregate tells which fields are set.
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

// Joined returns t with one row for all rows whose keys look the same. look returns what
// is shown of a part of a key. The key is that of the first of these rows.
func (t *Table) Joined(look func(*Value) []byte) *Table {
	joined := *t
	joined.Rows = nil
	places := map[string]int{}
	for i := range t.Rows {
		id := t.Rows[i].id(look)
		at, known := places[id]
		if !known {
			places[id] = len(joined.Rows)
			joined.Rows = append(joined.Rows, t.Rows[i])
			continue
		}
		joined.Rows[at] = joined.Rows[at].plus(&t.Rows[i], t.Aggregates)
	}
	return &joined
}

// id returns a text that only rows with the same key have, by the bytes that look returns
// for each part.
func (r *Row) id(look func(*Value) []byte) string {
	var id strings.Builder
	fmt.Fprintf(&id, "%q", r.Func)
	for i := range r.Key {
		part := look(&r.Key[i])
		fmt.Fprintf(&id, " %d %d:%s", r.Key[i].Addr, len(part), part)
	}
	return id.String()
}

// plus returns what was counted in two rows.
func (r *Row) plus(o *Row, aggregates []*compiler.Aggregate) Row {
	sum := *r
	sum.Calls += o.Calls
	sum.Cells = make([]Cell, len(r.Cells))
	for i, x := range r.Cells {
		switch a, y := aggregates[i], o.Cells[i]; a.Kind {
		case compiler.Count, compiler.Sum, compiler.Avg:
			x.Number = x.Number.Add(y.Number)
		case compiler.Min, compiler.Max:
			if less := y.Number.Cmp(x.Number) < 0; less == (a.Kind == compiler.Min) {
				x = y
			}
		default:
			counts := map[Int]uint64{}
			for _, b := range slices.Concat(x.Buckets, y.Buckets) {
				counts[b.From] += b.Count
			}
			x.Buckets = bucketsOf(a, func(_ int, from Int) uint64 { return counts[from] })
		}
		sum.Cells[i] = x
	}
	return sum
}

// After returns what was counted in t after an earlier reading of the same table. Rows
// without another call are left out, and become the earlier ones in t, with which the
// next reading is to be compared: their cells may have a part of a call already. The
// least and the greatest values since then are not known: they stay those of the whole
// time.
func (t *Table) After(earlier *Table) *Table {
	whole := func(v *Value) []byte { return v.Data }
	rows := map[string]*Row{}
	for i := range earlier.Rows {
		rows[earlier.Rows[i].id(whole)] = &earlier.Rows[i]
	}
	later := *t
	later.Since = earlier.Time
	later.Full, later.Faulted = t.Full-earlier.Full, t.Faulted-earlier.Faulted
	later.Rows = nil
	for i, row := range t.Rows {
		before, known := rows[row.id(whole)]
		if known && before.Calls == row.Calls {
			t.Rows[i] = *before
			continue
		}
		if known {
			row = row.after(before, t.Aggregates)
		}
		later.Rows = append(later.Rows, row)
	}
	return &later
}

func (r *Row) after(before *Row, aggregates []*compiler.Aggregate) Row {
	later := *r
	later.Calls -= before.Calls
	later.Cells = make([]Cell, len(r.Cells))
	for i, c := range r.Cells {
		switch aggregates[i].Kind {
		case compiler.Count, compiler.Sum, compiler.Avg:
			c.Number = c.Number.Sub(before.Cells[i].Number)
		case compiler.Hist, compiler.Linear:
			c.Buckets = bucketsAfter(c.Buckets, before.Cells[i].Buckets)
		}
		later.Cells[i] = c
	}
	return later
}

// bucketsAfter returns the buckets of a histogram without what they had before, from
// the first to the last that is not empty.
func bucketsAfter(now, before []Bucket) []Bucket {
	old := map[Int]uint64{}
	for _, b := range before {
		old[b.From] = b.Count
	}
	var later []Bucket
	end := 0
	for _, b := range now {
		b.Count -= old[b.From]
		if b.Count == 0 && len(later) == 0 {
			continue
		}
		later = append(later, b)
		if b.Count > 0 {
			end = len(later)
		}
	}
	return later[:end]
}

// Int is a signed integer of 128 bits, which holds the sum of any 2^63 values of 64 bits.
// Package math/big would make the binary larger by a quarter of a megabyte.
type Int struct {
	high int64
	low  uint64
}

// NewInt returns v as an Int.
func NewInt(v int64) Int { return Int{v >> 63, uint64(v)} }

// NewUint returns v as an Int.
func NewUint(v uint64) Int { return Int{0, v} }

// JoinInt returns the number with these halves, see [Int.Halves].
func JoinInt(high int64, low uint64) Int { return Int{high, low} }

// Halves returns the 64 high and the 64 low bits of n.
func (n Int) Halves() (high int64, low uint64) { return n.high, n.low }

// Add returns n+o.
func (n Int) Add(o Int) Int {
	low, carry := bits.Add64(n.low, o.low, 0)
	return Int{n.high + o.high + int64(carry), low}
}

// Times returns n*by.
func (n Int) Times(by uint64) Int {
	high, low := bits.Mul64(n.low, by)
	return Int{int64(uint64(n.high)*by + high), low}
}

// shifted returns n*2^32.
func (n Int) shifted() Int { return Int{n.high<<32 | int64(n.low>>32), n.low << 32} }

// Cmp returns -1 if n < o, 0 if n == o, and 1 if n > o.
func (n Int) Cmp(o Int) int {
	return cmp.Or(cmp.Compare(n.high, o.high), cmp.Compare(n.low, o.low))
}

// Uint64 returns n as a uint64, and whether n is in its range.
func (n Int) Uint64() (v uint64, ok bool) { return n.low, n.high == 0 }

// Float64 returns the nearest float64 to n, or one next to it.
func (n Int) Float64() float64 {
	high, low, negative := n.abs()
	f := float64(high)*(1<<64) + float64(low)
	if negative {
		return -f
	}
	return f
}

// abs returns the absolute value of n, and whether n is negative.
func (n Int) abs() (high, low uint64, negative bool) {
	if negative = n.high < 0; negative {
		n = Int{}.Sub(n)
	}
	return uint64(n.high), n.low, negative
}

// String returns n in decimal.
func (n Int) String() string {
	high, low, negative := n.abs()
	digits := ""
	for high > 0 {
		var rest uint64
		high, rest = high/10, high%10
		low, rest = bits.Div64(rest, low, 10)
		digits = strconv.Itoa(int(rest)) + digits
	}
	if low > 0 || digits == "" {
		digits = strconv.FormatUint(low, 10) + digits
	}
	if negative {
		return "-" + digits
	}
	return digits
}

// Sub returns n-o.
func (n Int) Sub(o Int) Int {
	low, borrow := bits.Sub64(n.low, o.low, 0)
	return Int{n.high - o.high - int64(borrow), low}
}
