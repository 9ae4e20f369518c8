package codegen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// tableOf has the aggregates that a reference expects of the last of its items, and the
// number of items before these, which are the key.
type tableOf struct {
	key        int
	aggregates []*spec.Aggregate
}

// tabled has the expected numbers of the calls with one key.
type tabled struct {
	calls  uint64
	values [][]uint64 // of each aggregate
	signed []bool
}

// keyPart is a part of a key that is not a number, as text.
type keyPart struct {
	text string
	bad  bool
}

// keyOf returns the part of a key that a value with bytes is: a string to its NUL, or
// all bytes in whole words.
func (r *reference) keyOf(c cell) keyPart {
	b := c.words
	if c.in != inWords {
		b = slices.Clone(r.read(&c, c.typ.size))
	}
	switch {
	case c.bad:
		return keyPart{bad: true}
	case c.typ.string():
		text, _, _ := strings.Cut(string(b[:c.typ.size]), "\x00")
		return keyPart{text: text}
	}
	whole := make([]byte, compiler.Align8(c.typ.size))
	copy(whole, b[:c.typ.size])
	return keyPart{text: fmt.Sprintf("%x", whole)}
}

// tabulate counts a matching call in its row.
func (r *reference) tabulate(n *counted) {
	var numbers []formatted
	var key []string
	for i, it := range r.trace.Items {
		it = r.listed(it)
		f, isNumber := r.call.numbers[it]
		text := fmt.Sprint(int64(f.num))
		if !isNumber {
			text, f.bad = r.call.keys[it].text, r.call.keys[it].bad
		}
		if f.bad {
			n.faulted++
			return
		}
		numbers = append(numbers, f)
		if i < r.table.key {
			key = append(key, text)
		}
	}
	if n.rows == nil {
		n.rows = map[string]*tabled{}
	}
	row := n.rows[strings.Join(key, " ")]
	if row == nil {
		row = &tabled{values: make([][]uint64, len(r.table.aggregates)), signed: make([]bool, len(r.table.aggregates))}
		n.rows[strings.Join(key, " ")] = row
	}
	row.calls++
	next := r.table.key
	for i, a := range r.table.aggregates {
		if a.X != nil {
			row.values[i] = append(row.values[i], numbers[next].num)
			row.signed[i] = numbers[next].signed
			next++
		}
	}
}

// checkTable compares the rows with the expected ones.
func (tr *trial) checkTable(number int) error {
	var want []string
	for key, row := range tr.counted.rows {
		parts := []string{fmt.Sprintf("calls=%d", row.calls)}
		if len(tr.probe().Key) > 0 {
			parts = append([]string{key}, parts...)
		}
		for i, a := range tr.probe().Aggregates {
			parts = append(parts, a.Kind.String()+"="+row.aggregate(a, i))
		}
		want = append(want, strings.Join(parts, " "))
	}
	slices.Sort(want)
	if got := tr.rows(0); !slices.Equal(got, want) {
		return fmt.Errorf("rows %q, and not %q", got, want)
	}
	if got := tr.unit.Counters.Sum(number, compiler.CounterFaulted, tr.word); got != tr.counted.faulted {
		return fmt.Errorf("%d calls faulted, and not %d", got, tr.counted.faulted)
	}
	return nil
}

// aggregate returns the aggregate i as text.
func (row *tabled) aggregate(a *compiler.Aggregate, i int) string {
	values := row.values[i]
	less := func(x, y uint64) bool {
		if row.signed[i] {
			return int64(x) < int64(y)
		}
		return x < y
	}
	switch a.Kind {
	case compiler.Count:
		return fmt.Sprint(row.calls)
	case compiler.Sum, compiler.Avg:
		sum := uint64(0)
		for _, v := range values {
			sum += v
		}
		return fmt.Sprint(int64(sum))
	case compiler.Min, compiler.Max:
		best := values[0]
		for _, v := range values {
			if less(v, best) == (a.Kind == compiler.Min) && v != best {
				best = v
			}
		}
		return fmt.Sprint(int64(best))
	}
	var buckets []string
	for b := range a.Buckets() {
		low, high := a.Edges(b)
		if a.Kind == compiler.Hist && b == 64 && row.signed[i] || a.Kind == compiler.Linear && b == 0 && low == a.Low {
			continue // no value can be there
		}
		n := 0
		for _, v := range values {
			if !less(v, low) && !less(high, v) {
				n++
			}
		}
		if n > 0 {
			buckets = append(buckets, fmt.Sprintf("%d..%d:%d", int64(low), int64(high), n))
		}
	}
	return strings.Join(buckets, ",")
}
