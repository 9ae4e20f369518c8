package runtime

import "github.com/ksnoop/ksnoop/compiler"

// After returns what was counted in t after an earlier reading of the same table. Rows
// that have not changed are left out. The least and the greatest values of that time
// alone are not known: they stay those of all the time.
func (t *Table) After(earlier *Table) *Table {
	whole := func(v *Value) []byte { return v.Data }
	rows := map[string]*Row{}
	for i := range earlier.Rows {
		rows[earlier.Rows[i].id(whole)] = &earlier.Rows[i]
	}
	later := *t
	later.Since = earlier.Time
	later.Full, later.Unread = t.Full-earlier.Full, t.Unread-earlier.Unread
	later.Rows = nil
	for _, row := range t.Rows {
		before, known := rows[row.id(whole)]
		if known && before.Calls == row.Calls {
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
