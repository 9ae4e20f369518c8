package verdict

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/suite"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/render"
)

const (
	// tableRows is how many rows of a table are shown beside a result. JSON has all.
	tableRows = 20
	// tableWidth is the width of a table in columns.
	tableWidth = 100
)

// table returns the table of a spec with aggregates, or nil if there is none.
func (c *counted) table() *runtime.Table {
	if c.leftOut() || c.last > 0 {
		return nil
	}
	side := c.sides[0]
	i := slices.IndexFunc(side.unit.unit.Tables, func(l *compiler.TableLayout) bool { return l.Asked == side.trace() })
	if i < 0 {
		return nil
	}
	return side.unit.counts.tables[i]
}

// breaking returns the table with those rows for which a condition on each of them does
// not hold.
func breaking(t *runtime.Table, c *suite.Condition) *runtime.Table {
	only := *t
	only.Rows = nil
	bound := runtime.NewInt(c.Row.Bound)
	for i, a := range t.Aggregates {
		if a.Name != c.Row.Aggregate {
			continue
		}
		for _, row := range t.Rows {
			limit := bound
			if a.Kind == compiler.Avg { // of which the cell has the sum
				limit = bound.Times(row.Calls)
			}
			if !c.Op.Holds(row.Cells[i].Number.Cmp(limit)) {
				only.Rows = append(only.Rows, row)
			}
		}
		break
	}
	return &only
}

// showTable adds the table of a result to what is printed of it.
func (t *tester) showTable(r *testResult) error {
	if r.table == nil {
		return nil
	}
	values := btfdump.Options{Compact: true, EmitStrings: true}
	names := render.NewSymbols(t.kernel.Finder, term.WarnOn(t.streams.Err))
	shown := r.table
	if r.breaking != nil && len(r.breaking.Rows) > 0 {
		shown = r.breaking
	}
	text, err := tableAs(shown, render.Options{
		Values: values, Symbols: names, Containers: t.containers, Look: render.Look{Width: tableWidth}, Arrange: render.Arrangement{Top: tableRows},
	})
	if err != nil {
		return err
	}
	r.Notes = append(r.Notes, strings.Split(strings.TrimSpace(text), "\n")...)
	text, err = tableAs(r.table, render.Options{Format: "json", Values: btfdump.Options{EmitStrings: true}, Symbols: names, Containers: t.containers})
	r.json = []byte(strings.TrimSpace(text))
	return err
}

// tableAs returns a table in a format of events.
func tableAs(table *runtime.Table, o render.Options) (string, error) {
	out, err := render.New(&compiler.Unit{}, o)
	if err != nil {
		return "", err
	}
	if err := out.Flush(io.Discard); err != nil { // what goes before events
		return "", err
	}
	if err := out.Table(table); err != nil {
		return "", err
	}
	var text bytes.Buffer
	err = out.Flush(&text)
	return text.String(), err
}
