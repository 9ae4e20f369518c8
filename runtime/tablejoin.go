package runtime

import (
	"fmt"
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
)

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
			for _, b := range x.Buckets {
				counts[b.From] += b.Count
			}
			for _, b := range y.Buckets {
				counts[b.From] += b.Count
			}
			x.Buckets = bucketsOf(a, func(_ int, from Int) uint64 { return counts[from] })
		}
		sum.Cells[i] = x
	}
	return sum
}
