package runtime

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf/btf"

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
// for each part, and by whether they are all of it.
func (r *Row) id(look func(*Value) []byte) string {
	var id strings.Builder
	fmt.Fprintf(&id, "%q", r.Func)
	for i := range r.Key {
		part := look(&r.Key[i])
		fmt.Fprintf(&id, " %d %t %d:%s", r.Key[i].Addr, r.Key[i].Cut, len(part), part)
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
			if a.Kind == compiler.Hist { // of a glob, whose first function may have numbers of another sign
				a = everyBucket
			}
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

// everyBucket has the buckets of histograms of all numbers.
var everyBucket = &compiler.Aggregate{Kind: compiler.Hist, Value: &compiler.Value{Scalar: &compiler.Scalar{Size: 8, Signed: true}}}

// row decodes a row. It returns false if no call has been counted in it yet.
func (s *Session) row(l *compiler.TableLayout, key, element []byte) (Row, bool) {
	order := binary.NativeEndian
	row := Row{Calls: order.Uint64(element)}
	if row.Calls == 0 {
		return row, false
	}
	probe := s.unit.Events[l.Events[0]].Probe
	if l.Function >= 0 {
		if n := int(order.Uint64(key[l.Function:])); slices.Contains(l.Events, n) {
			probe = s.unit.Events[n].Probe
		}
		row.Func = probe.Func.Name
	}
	for i, v := range probe.Key {
		row.Key = append(row.Key, keyValue(v, l, i, key, element))
	}
	for i, a := range probe.Aggregates {
		row.Cells = append(row.Cells, newCell(a, l, row.Calls, element[l.Cells[i]:]))
	}
	return row, true
}

// keyValue decodes a part of a key.
func keyValue(v *compiler.Value, l *compiler.TableLayout, i int, key, element []byte) Value {
	at := l.Key[i]
	slot := compiler.Slot{Off: at, Data: at}
	switch {
	case v.Base.Builtin == compiler.KernelStack:
		stack := element[l.Stacks[i]:]
		n := int64(binary.NativeEndian.Uint64(stack))
		stack = stack[8 : 8+min(max(n, 0), 8*int64(stackFrames))]
		return Value{Value: v, Data: stack, Full: len(stack)}
	case v.Text != compiler.NoText:
		slot.Cap = compiler.MostKeyPart + compiler.StringSlack
	case v.Scalar != nil:
		slot.Cap = 8
	default:
		slot.Cap, _ = btf.Sizeof(v.Type) // sizes of bound values are known
	}
	slot.Full = slot.Cap
	val := decodeValue(v, slot, compiler.NoFault, key)
	val.Addr = 0
	return val
}

// stackFrames is the largest number of frames of a stack in a table.
const stackFrames = 64

// newCell decodes an aggregate from the beginning of b.
func newCell(a *compiler.Aggregate, l *compiler.TableLayout, calls uint64, b []byte) (c Cell) {
	order := binary.NativeEndian
	switch a.Kind {
	case compiler.Count:
		c.Number = NewUint(calls)
	case compiler.Sum, compiler.Avg:
		c.Number = number(order.Uint64(b[8:]), a.Signed()).shifted().Add(number(order.Uint64(b), a.Signed()))
	case compiler.Min, compiler.Max:
		c.Number = extreme(extremeOf(a, l, b), a.Signed())
	default:
		c.Buckets = bucketsOf(a, func(i int, _ Int) uint64 { return order.Uint64(b[8*i:]) })
	}
	return c
}

// extremeOf returns the least or the greatest value, stored as in [compiler.Extremes]: that
// of all CPUs, or the one that they share.
func extremeOf(a *compiler.Aggregate, l *compiler.TableLayout, b []byte) (v uint64) {
	order := binary.NativeEndian
	if l.Slots == 0 {
		v = order.Uint64(b)
	}
	for i := range l.Slots * compiler.Nesting {
		at := i*compiler.ExtremesSize + compiler.ExtremesMost
		if a.Kind == compiler.Min {
			at = i*compiler.ExtremesSize + compiler.ExtremesNotLeast
		}
		v = max(v, order.Uint64(b[at:]))
	}
	if a.Kind == compiler.Min {
		v = ^v
	}
	return v
}

// bucketsOf returns the buckets of a histogram from the first to the last that is not
// empty. count returns what is in bucket i, whose least value is from.
func bucketsOf(a *compiler.Aggregate, count func(i int, from Int) uint64) []Bucket {
	var all []Bucket
	for i := range a.Buckets() {
		low, high := a.Edges(i)
		signed := a.Signed()
		switch {
		case a.Kind == compiler.Hist:
			signed = i > 64 // see [compiler.Aggregate.Buckets]
		case i == 0 && low == a.Low:
			continue // no value is below the bounds, and the next bucket begins there
		}
		from := number(low, signed)
		all = append(all, Bucket{from, number(high, signed), count(i, from)})
	}
	sort.Slice(all, func(i, j int) bool { return all[i].From.Cmp(all[j].From) < 0 })
	counted := func(b Bucket) bool { return b.Count > 0 }
	for len(all) > 0 && !counted(all[len(all)-1]) {
		all = all[:len(all)-1]
	}
	return all[max(slices.IndexFunc(all, counted), 0):]
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
