package probes

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// Overflow is the value of all labels of the series that has the calls of the keys
// for which there was no series left.
const Overflow = "(other)"

// series assigns the rows of a table to label sets. A row stays with its label set for
// ever, so that counters never decrease.
type series struct {
	limit  int
	labels map[string][]string // of the keys that have been seen; nil for those of the overflow
	used   map[string]bool     // label sets that are served
}

func newSeries(limit int) *series {
	return &series{limit: limit, labels: map[string][]string{}, used: map[string]bool{}}
}

// total is the sum of the rows of a label set.
type total struct {
	labels []string
	calls  uint64
	cells  []cell // by aggregate
}

// cell is the sum of cells of rows.
type cell struct {
	number  runtime.Int
	buckets []runtime.Bucket
}

// totals adds up the rows of a table by label set.
func (s *series) totals(t *runtime.Table, out render.Printer) ([]*total, error) {
	if err := s.admit(t, out); err != nil {
		return nil, err
	}
	var all []*total
	found := map[string]*total{}
	for i := range t.Rows {
		row := &t.Rows[i]
		labels := s.labels[keyOf(row)]
		if labels == nil {
			labels = overflow(t)
		}
		set := join(labels)
		sum := found[set]
		if sum == nil {
			sum = &total{labels: labels, cells: make([]cell, len(t.Aggregates))}
			found[set] = sum
			all = append(all, sum)
		}
		sum.add(row, t.Aggregates)
	}
	return all, nil
}

// admit gives label sets to the keys that are new, to those with the most calls first.
func (s *series) admit(t *runtime.Table, out render.Printer) error {
	var fresh []*runtime.Row
	for i := range t.Rows {
		if _, known := s.labels[keyOf(&t.Rows[i])]; !known {
			fresh = append(fresh, &t.Rows[i])
		}
	}
	slices.SortStableFunc(fresh, func(a, b *runtime.Row) int {
		if order := cmp.Compare(b.Calls, a.Calls); order != 0 {
			return order
		}
		return strings.Compare(keyOf(a), keyOf(b))
	})
	for _, row := range fresh {
		labels, err := labelValues(t, row, out)
		if err != nil {
			return err
		}
		set := join(labels)
		switch {
		case s.used[set]:
		case len(s.used) < s.limit:
			s.used[set] = true
		default:
			labels = nil
		}
		s.labels[keyOf(row)] = labels
	}
	return nil
}

func join(labels []string) string { return strings.Join(labels, "\x00") }

func overflow(t *runtime.Table) (labels []string) {
	n := len(t.Key)
	if t.ByFunction {
		n++
	}
	for range n {
		labels = append(labels, Overflow)
	}
	return labels
}

// keyOf returns a text that only rows with the same key have.
func keyOf(r *runtime.Row) string {
	var key strings.Builder
	fmt.Fprintf(&key, "%q", r.Func)
	for i := range r.Key {
		fmt.Fprintf(&key, " %d:%s", len(r.Key[i].Data), r.Key[i].Data)
	}
	return key.String()
}

// labelValues returns the parts of a key as JSON has them, strings without quotes.
func labelValues(t *runtime.Table, row *runtime.Row, out render.Printer) (labels []string, err error) {
	one := *t
	one.Rows = []runtime.Row{*row}
	if err := out.Table(&one); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := out.Flush(&text); err != nil {
		return nil, err
	}
	var line struct {
		Rows []struct{ Key json.RawMessage }
	}
	if err := json.Unmarshal(text.Bytes(), &line); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(line.Rows[0].Key))
	if _, err := d.Token(); err != nil { // the brace
		return nil, err
	}
	for d.More() {
		var value json.RawMessage
		if _, err := d.Token(); err != nil { // the name
			return nil, err
		}
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		labels = append(labels, labelValue(value))
	}
	return labels, nil
}

// labelValue returns a string without quotes, the strings of an array joined by
// semicolons as flame graphs have stacks, and anything else as JSON.
func labelValue(value json.RawMessage) string {
	var text string
	var list []string
	switch {
	case json.Unmarshal(value, &text) == nil:
	case json.Unmarshal(value, &list) == nil:
		text = strings.Join(list, ";")
	default:
		text = string(value)
	}
	return strings.ToValidUTF8(text, "\ufffd")
}

func (sum *total) add(row *runtime.Row, aggregates []*compiler.Aggregate) {
	first := sum.calls == 0
	sum.calls += row.Calls
	for i, a := range aggregates {
		c, from := &sum.cells[i], row.Cells[i]
		switch {
		case a.Kind == compiler.Hist || a.Kind == compiler.Linear:
			c.buckets = slices.Concat(c.buckets, from.Buckets)
		case a.Kind == compiler.Min && (first || from.Number.Cmp(c.number) < 0),
			a.Kind == compiler.Max && (first || from.Number.Cmp(c.number) > 0):
			c.number = from.Number
		case a.Kind != compiler.Min && a.Kind != compiler.Max:
			c.number = c.number.Add(from.Number)
		}
	}
}
